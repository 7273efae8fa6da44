// The floor: a hard-coded loop that only counts GPUs, for one fixed policy at a time.
// Same semantics as Gantline in rounds with first-free placement, so both must give the same figures.
// It does what a run does that nobody asks for devices, a log or names: from columns in memory to the figures of our summary that are about
// schedules. Prints its seconds, those of the loop alone, and the figures.
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
#include <initializer_list>
#include <limits>
#include <queue>
#include <vector>

struct Job {
  double arrival, duration, done = 0, service = 0, since = 0, first = -1, finish = -1, key = 0;
  int gpus, stops = 0;
  bool runs = false;
};

const double inf = std::numeric_limits<double>::infinity();

// A trace in memory.
struct Columns {
  std::vector<double> arrival, duration;
  std::vector<long> gpus;
};

// What a summary tells of jobs that have all ended.
struct Summary {
  double mean, median, p95, p99, max, makespan, queueing, response, use, hours;
  long waited;
};

double seconds(clock_t from, clock_t to) { return double(to - from) / CLOCKS_PER_SEC; }

// The value at that share of all, between two neighbours where it falls between them.
double quantile(std::vector<double> &values, double share) {
  const double place = share * (values.size() - 1);
  const size_t low = (size_t)place;
  std::nth_element(values.begin(), values.begin() + low, values.end());
  if (low + 1 == values.size()) return values[low];
  const double next = *std::min_element(values.begin() + low + 1, values.end());
  return values[low] + (place - low) * (next - values[low]);
}

Summary summarise(const std::vector<Job> &jobs, int total, double round_length, double now) {
  std::vector<double> jct;
  jct.reserve(jobs.size());
  Summary told = {};
  double busy = 0, end = 0;
  for (auto &j : jobs) {
    jct.push_back(j.finish - j.arrival);
    told.mean += j.finish - j.arrival, told.queueing += j.finish - j.arrival - j.duration, told.response += j.first - j.arrival;
    told.max = std::max(told.max, j.finish - j.arrival), end = std::max(end, j.finish), busy += j.duration * j.gpus;
    told.waited += j.first - j.arrival > round_length * (1 + 1e-9) || j.stops > 0;
  }
  const double n = jobs.size();
  told.mean /= n, told.queueing /= n, told.response /= n;
  told.makespan = end - jobs[0].arrival, told.hours = busy / 3600, told.use = busy / (total * (std::max(now, end) - jobs[0].arrival));
  told.median = quantile(jct, 0.5), told.p95 = quantile(jct, 0.95), told.p99 = quantile(jct, 0.99);
  return told;
}

// Who fits starts, in order of arrival; whoever does not fit is passed. The time of the last look comes back.
double never_stop(std::vector<Job> &jobs, int total, double round_length) {
  std::vector<std::deque<int>> queue(total + 1);
  std::vector<int> sizes;  // that occur, rising
  std::vector<bool> seen(total + 1, false);
  for (auto &j : jobs) seen[j.gpus] = true;
  for (int g = 1; g <= total; ++g)
    if (seen[g]) sizes.push_back(g);
  typedef std::pair<double, int> Finish;
  std::priority_queue<Finish, std::vector<Finish>, std::greater<Finish>> finishes;
  size_t next = 0, waiting = 0;
  int left = total;
  double now = -round_length;
  while (true) {
    double due = finishes.empty() ? inf : finishes.top().first;
    if (next < jobs.size()) due = std::min(due, jobs[next].arrival);
    if (due == inf) return now;
    now = std::max(std::ceil(due / round_length - 1e-9) * round_length, now + round_length);
    for (; !finishes.empty() && finishes.top().first <= now; finishes.pop()) {
      Job &j = jobs[finishes.top().second];
      j.finish = finishes.top().first, left += j.gpus;
    }
    for (; next < jobs.size() && jobs[next].arrival <= now; ++next, ++waiting) queue[jobs[next].gpus].push_back((int)next);
    if (!waiting) continue;
    while (true) {
      int best = -1;
      for (int g : sizes) {
        if (g > left) break;
        if (!queue[g].empty() && (best < 0 || queue[g].front() < best)) best = queue[g].front();
      }
      if (best < 0) break;
      Job &j = jobs[best];
      queue[j.gpus].pop_front(), --waiting, left -= j.gpus;
      j.first = now;
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
  Columns trace;
  double a, d;
  long g;
  while (scanf("%lf %ld %lf", &a, &g, &d) == 3) trace.arrival.push_back(a), trace.gpus.push_back(g), trace.duration.push_back(d);
  const clock_t began = clock();
  std::vector<Job> jobs(trace.arrival.size());
  for (size_t i = 0; i < jobs.size(); ++i)
    jobs[i].arrival = trace.arrival[i], jobs[i].gpus = (int)trace.gpus[i], jobs[i].duration = trace.duration[i];
  const clock_t loop = clock();
  std::vector<int> running, waiting, still, back;
  std::vector<int> sizes(total + 1, 0);  // of those who wait
  size_t next = 0;
  double now = -round_length, wake = inf;
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
  if (fifo) now = never_stop(jobs, total, round_length);
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
            ++j.stops;
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
  const clock_t ended = clock();
  const Summary told = summarise(jobs, total, round_length, now);
  const clock_t done = clock();
  printf("%.6f %.6f", seconds(began, done), seconds(loop, ended));
  for (double value :
       {told.mean, told.median, told.p95, told.p99, told.max, told.makespan, told.queueing, told.response, told.use, told.hours})
    printf(" %.9g", value);
  printf(" %ld\n", told.waited);
}
