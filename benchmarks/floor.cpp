// The floor: a hard-coded loop that only counts GPUs, for one fixed policy at a time.
// Same semantics as Gantline in rounds with first-free placement, so both must give the same mean completion time.
// Policies that stop gangs: those who run and those who wait are two lists sorted by key (keys of those who wait do not move), merged.
// FIFO, which never stops anybody: a queue per gang size and a heap of finishes.
// usage: floor POLICY GPUS ROUND < rows of "arrival gpus duration", sorted by arrival
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <limits>
#include <queue>
#include <vector>

struct Job {
  double arrival, duration, done = 0, service = 0, since = 0, first = -1, finish = -1, key = 0;
  int gpus;
  bool runs = false;
};

const double inf = std::numeric_limits<double>::infinity();

// Who fits starts, in order of arrival; whoever does not fit is passed. Decisions come back.
long never_stop(std::vector<Job> &jobs, int total, double round_length) {
  std::vector<std::deque<int>> queue(total + 1);
  std::vector<int> sizes;  // that occur, rising
  std::vector<bool> seen(total + 1, false);
  for (auto &j : jobs) seen[j.gpus] = true;
  for (int g = 1; g <= total; ++g)
    if (seen[g]) sizes.push_back(g);
  typedef std::pair<double, int> Finish;
  std::priority_queue<Finish, std::vector<Finish>, std::greater<Finish>> finishes;
  size_t next = 0, waiting = 0;
  long decisions = 0;
  int left = total;
  double now = -round_length;
  while (true) {
    double due = finishes.empty() ? inf : finishes.top().first;
    if (next < jobs.size()) due = std::min(due, jobs[next].arrival);
    if (due == inf) return decisions;
    now = std::max(std::ceil(due / round_length - 1e-9) * round_length, now + round_length);
    for (; !finishes.empty() && finishes.top().first <= now; finishes.pop()) {
      Job &j = jobs[finishes.top().second];
      j.finish = finishes.top().first, left += j.gpus;
    }
    for (; next < jobs.size() && jobs[next].arrival <= now; ++next, ++waiting) queue[jobs[next].gpus].push_back((int)next);
    if (!waiting) continue;
    ++decisions;
    while (true) {
      int best = -1;
      for (int g : sizes) {
        if (g > left) break;
        if (!queue[g].empty() && (best < 0 || queue[g].front() < best)) best = queue[g].front();
      }
      if (best < 0) break;
      Job &j = jobs[best];
      queue[j.gpus].pop_front(), --waiting, left -= j.gpus;
      finishes.push({now + j.duration, best});
    }
  }
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  const char *policy = argv[1];
  const int total = atoi(argv[2]);
  const double round_length = atof(argv[3]);
  const bool fifo = !strcmp(policy, "fifo"), srtf = !strcmp(policy, "srtf"), las = !strcmp(policy, "las");
  const double limit = 3600;
  std::vector<Job> jobs;
  double a, d;
  int g;
  while (scanf("%lf %d %lf", &a, &g, &d) == 3) {
    Job j;
    j.arrival = a, j.gpus = g, j.duration = d;
    jobs.push_back(j);
  }
  clock_t began = clock();
  std::vector<int> running, waiting, still, back;
  std::vector<int> sizes(total + 1, 0);  // of those who wait
  size_t next = 0;
  double now = -round_length, wake = inf;
  long decisions = 0, preemptions = 0;
  auto before = [&](int x, int y) { return jobs[x].key != jobs[y].key ? jobs[x].key < jobs[y].key : x < y; };
  auto rate = [&](Job &j) {
    double run = j.runs ? now - j.since : 0;
    if (srtf) return j.duration - (j.done + run);
    if (las) return j.service + run;
    return ((j.service + run) * j.gpus >= limit ? 1e12 : 0) + (j.first < 0 ? 1e11 + j.arrival : j.first);
  };
  auto wait = [&](int i) {
    jobs[i].key = rate(jobs[i]);
    waiting.insert(std::upper_bound(waiting.begin(), waiting.end(), i, before), i);
    ++sizes[jobs[i].gpus];
  };
  if (fifo) decisions = never_stop(jobs, total, round_length);
  while (!fifo) {
    double due = wake;
    if (next < jobs.size()) due = std::min(due, jobs[next].arrival);
    if (due == inf) break;
    now = std::max(std::ceil(due / round_length - 1e-9) * round_length, now + round_length);
    size_t kept = 0;
    for (int i : running) {
      Job &j = jobs[i];
      if (j.since + (j.duration - j.done) <= now) {
        j.finish = j.since + (j.duration - j.done);
        j.runs = false;
      } else {
        running[kept++] = i;
      }
    }
    running.resize(kept);
    for (; next < jobs.size() && jobs[next].arrival <= now; ++next) wait((int)next);
    if (!waiting.empty()) {
      ++decisions;
      for (size_t r = 0; r < running.size(); ++r) {  // nearly sorted: insertion
        int i = running[r];
        jobs[i].key = rate(jobs[i]);
        size_t at = r;
        for (; at > 0 && before(i, running[at - 1]); --at) running[at] = running[at - 1];
        running[at] = i;
      }
      int left = total, smallest = 0;
      still.clear(), back.clear();
      size_t r = 0, w = 0, written = 0;
      while (r < running.size() || w < waiting.size()) {
        if (w == waiting.size() || (r < running.size() && before(running[r], waiting[w]))) {
          int i = running[r++];
          Job &j = jobs[i];
          if (j.gpus <= left) {
            left -= j.gpus;
            still.push_back(i);
          } else {
            j.done += now - j.since, j.service += now - j.since, j.runs = false;
            ++preemptions;
            back.push_back(i);
          }
          continue;
        }
        while (smallest <= total && sizes[smallest] == 0) ++smallest;
        if (left < smallest) {  // nobody who waits fits any more
          if (written < w) waiting.erase(waiting.begin() + written, waiting.begin() + w);
          w = written = waiting.size();
          continue;
        }
        int i = waiting[w++];
        Job &j = jobs[i];
        if (j.gpus <= left) {
          left -= j.gpus;
          --sizes[j.gpus];
          j.runs = true, j.since = now;
          if (j.first < 0) j.first = now;
          still.push_back(i);
        } else {
          waiting[written++] = i;
        }
      }
      waiting.resize(written);
      running.swap(still);
      for (int i : back) wait(i);
    }
    wake = inf;
    for (int i : running) {
      Job &j = jobs[i];
      wake = std::min(wake, j.since + (j.duration - j.done));
      if (!srtf && !las) {
        double left = limit - j.service * j.gpus;
        double at = j.since + left / j.gpus;
        if (left > 0 && at > now) wake = std::min(wake, at);
      }
    }
    if (las && !waiting.empty()) wake = std::min(wake, now + round_length);
  }
  double seconds = double(clock() - began) / CLOCKS_PER_SEC, sum = 0;
  for (auto &j : jobs) sum += j.finish - j.arrival;
  printf("%.6f %.6f %ld %ld\n", seconds, sum / jobs.size(), decisions, preemptions);
}
