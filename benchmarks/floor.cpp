// The floor: a hard-coded loop that only counts GPUs, for one fixed policy at a time.
// Same semantics as Gantline in rounds with first-free placement, so both must give the same mean completion time.
// usage: floor POLICY GPUS ROUND < rows of "arrival gpus duration", sorted by arrival
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

struct Job {
  double arrival, duration, done = 0, service = 0, since = 0, first = -1, finish = -1, key = 0;
  int gpus;
  bool runs = false;
};

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  const char *policy = argv[1];
  const int total = atoi(argv[2]);
  const double round_length = atof(argv[3]);
  const bool fifo = !strcmp(policy, "fifo"), srtf = !strcmp(policy, "srtf"), las = !strcmp(policy, "las");
  const double limit = 3600, inf = std::numeric_limits<double>::infinity();
  std::vector<Job> jobs;
  double a, d;
  int g;
  while (scanf("%lf %d %lf", &a, &g, &d) == 3) {
    Job j;
    j.arrival = a, j.gpus = g, j.duration = d;
    jobs.push_back(j);
  }
  auto began = std::chrono::steady_clock::now();
  std::vector<int> active;
  size_t next = 0;
  double now = -round_length, wake = inf;
  long decisions = 0, preemptions = 0;
  while (true) {
    double due = wake;
    if (next < jobs.size()) due = std::min(due, jobs[next].arrival);
    if (due == inf) break;
    now = std::max(std::ceil(due / round_length - 1e-9) * round_length, now + round_length);
    size_t kept = 0;
    for (int i : active) {
      Job &j = jobs[i];
      if (j.runs && j.since + (j.duration - j.done) <= now) {
        j.finish = j.since + (j.duration - j.done);
        j.runs = false;
      } else {
        active[kept++] = i;
      }
    }
    active.resize(kept);
    while (next < jobs.size() && jobs[next].arrival <= now) active.push_back((int)next++);
    bool waits = false;
    for (int i : active) waits |= !jobs[i].runs;
    if (waits) {
      ++decisions;
      for (int i : active) {
        Job &j = jobs[i];
        double run = j.runs ? now - j.since : 0;
        if (fifo) j.key = j.runs ? -1 : j.arrival;
        else if (srtf) j.key = j.duration - (j.done + run);
        else if (las) j.key = j.service + run;
        else j.key = ((j.service + run) * j.gpus >= limit ? 1e12 : 0) + (j.first < 0 ? 1e11 + j.arrival : j.first);
      }
      std::sort(active.begin(), active.end(), [&](int x, int y) { return jobs[x].key != jobs[y].key ? jobs[x].key < jobs[y].key : x < y; });
      int left = total;
      for (int i : active) {
        Job &j = jobs[i];
        if (j.gpus <= left) {
          left -= j.gpus;
          if (!j.runs) {
            j.runs = true, j.since = now;
            if (j.first < 0) j.first = now;
          }
        } else if (j.runs) {
          j.done += now - j.since, j.service += now - j.since, j.runs = false;
          ++preemptions;
        }
      }
    }
    wake = inf;
    waits = false;
    for (int i : active) {
      Job &j = jobs[i];
      if (!j.runs) {
        waits = true;
        continue;
      }
      wake = std::min(wake, j.since + (j.duration - j.done));
      if (!fifo && !srtf && !las) {
        double left = limit - j.service * j.gpus;
        double at = j.since + left / j.gpus;
        if (left > 0 && at > now) wake = std::min(wake, at);
      }
    }
    if (las && waits) wake = std::min(wake, now + round_length);
  }
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  double sum = 0;
  for (auto &j : jobs) sum += j.finish - j.arrival;
  printf("%.6f %.6f %ld %ld\n", seconds, sum / jobs.size(), decisions, preemptions);
}
