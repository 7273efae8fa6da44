"""The policy that chooses its policy: a portfolio is rolled forward from the present, and the best combination is in charge.

After Blox (Agarwal et al., EuroSys 2024, section 4.3 and Figures 14 and 15), which simulates nine combinations at every round.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from gantline.core.arrays import Bools, Floats
from gantline.core.errors import RefusedError, UsageError
from gantline.core.fields import human_seconds
from gantline.core.plan import InCharge, Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.lab.questions.newcomers import LikeThePast, tell_how_others_come
from gantline.models.uncertainty import Uncertainty
from gantline.policies.admission.rules import find_admission
from gantline.simulator.objective import WORDS, Ended, Objective
from gantline.simulator.rollout import Candidate, Futures, Newcomers, rollout
from gantline.traces.files.policies import load_placement, load_policy

# --- every policy of the portfolio behind every admission rule ----------------------------------------------------------
WHERE = "policy 'synthesizer'"
ITSELF = ("synthesizer", "auto")
_ENTRY = re.compile(r"(?P<name>[^()]+?)(?:\((?P<settings>[^()]*)\))?")


@dataclass(frozen=True)
class Combination:
    """One policy behind one admission rule, its gangs placed by one rule; `load_limit` is in times the cluster's GPUs."""

    name: str
    member: str  # the policy as the portfolio writes it; its memory is kept while another is in charge
    policy: Policy
    admission: str
    load_limit: float
    placement: str = ""  # empty: the run's


@lru_cache(maxsize=32)
def combinations(portfolio: tuple[str, ...], admissions: tuple[str, ...], placements: tuple[str, ...] = ()) -> tuple[Combination, ...]:
    """All of them, in order: the first wins where several are alike."""
    if not portfolio:
        raise UsageError("the portfolio is empty", where=WHERE, fix="--set portfolio=fifo,las,srtf")
    for what, names in (("portfolio", portfolio), ("admissions", admissions), ("placements", placements)):
        for name in names:
            if names.count(name) > 1:
                raise UsageError(f"'{name}' stands twice in {what}", where=WHERE, fix="name it once")
    found = []
    for member in portfolio:
        policy = _policy(member)
        for admission in admissions or ("accept-all",):
            rule = find_admission(admission)
            if rule.has_quota:
                raise UsageError(f"'{admission}' is a quota, which belongs to the run", where=WHERE, fix="use accept-all or load-limit:1.2")
            if rule.load_limit != float("inf") and not policy.ranks:
                text = f"'{member}' makes plans for all jobs that it sees, so none can be kept from it by '{admission}'"
                raise UsageError(text, where=WHERE, fix="use accept-all, or leave the policy out")
            behind = member if admission == "accept-all" else f"{member}+{admission}"
            for placement in placements or ("",):
                _check_placement(member, policy, placement)
                name = f"{behind}@{placement}" if placement else behind
                found.append(Combination(name, member, policy, admission, rule.load_limit, placement))
    return tuple(found)


def _check_placement(member: str, policy: Policy, placement: str) -> None:
    """A placement rule that is not known, or that the policy does not use, is refused."""
    if not placement:
        return
    load_placement(placement)
    if not policy.ranks:
        text = f"'{member}' says itself which devices its gangs get, so '{placement}' would change nothing"
        raise UsageError(text, where=WHERE, fix="leave out placements, or the policy")


def _policy(member: str) -> Policy:
    """A policy as a portfolio writes it: ``las``, ``las(service=gpu-time)``, ``fifo(backfill=easy)``."""
    read = _ENTRY.fullmatch(member.strip())
    if read is None:
        raise UsageError(f"'{member}' cannot be read", where=WHERE, fix="write a policy as las or las(service=gpu-time)")
    name, settings = read["name"].strip(), {}
    for part in (read["settings"] or "").split(";"):
        key, equals, value = part.partition("=")
        if part.strip():
            if not equals:
                raise UsageError(f"'{part}' is no setting", where=WHERE, fix=f"write {name}(parameter=value)")
            settings[key.strip()] = value.strip()
    given: dict[str, object] = settings
    policy = None if name in ITSELF else load_policy(name, given)  # a file may be one, too
    if policy is None or isinstance(policy.observed, Synthesizer):
        raise UsageError(f"the portfolio holds the synthesizer itself, as '{name}'", where=WHERE, fix="name other policies")
    return policy


# --- scores, and whether a challenger is enough better ------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """The place of the combination that shall be in charge, its score and that of the one that was, and the share of futures it won."""

    best: int
    score: float
    before: float
    share: float


def scores(snapshot: Snapshot, futures: Sequence[Futures], objective: Objective, until: float, beside: int) -> Floats:
    """Scores by (combination, future), less is better; those of one that has failed are infinite. Sums are in proportion to `beside`."""
    count = max(len(one) for one in futures)
    found = np.full((len(futures), count), np.inf)
    if objective.words == ("mean-jct",) and until == math.inf and all(np.isfinite(one.finish).all() for one in futures):
        for place, one in enumerate(futures):  # the usual case at once
            found[place, : len(one)] = (one.finish - snapshot.jobs.arrival).mean(axis=1)
        return found
    for number in range(count):
        values = [objective.values(_ended(snapshot, one, number, until)) if len(one) > number else None for one in futures]
        measure = values[beside] or next(each for each in values if each is not None)
        for place, each in enumerate(values):
            if each is not None:
                found[place, number] = objective.score(each, measure)
    return found


def _ended(snapshot: Snapshot, one: Futures, number: int, until: float) -> Ended:
    """A future as an objective sees it; how long jobs would take is as estimated, for all combinations alike."""
    jobs, finish = snapshot.jobs, one.finish[number]
    last = float(np.max(finish[np.isfinite(finish)], initial=snapshot.now))
    began = np.where(np.isnan(jobs.first_start), one.start[number], jobs.first_start)
    end = until if math.isfinite(until) else last
    gpus = jobs.gpus.astype(np.float64)
    dollars, kwh = (math.nan if each is None else float(each[number]) for each in (one.dollars, one.kwh))
    return Ended(
        jobs.arrival, began, finish, jobs.estimate, gpus, end, float(snapshot.cluster.gpus), jobs.deadline, dollars=dollars, kwh=kwh
    )


def judge(found: Floats, present: int | None, margin: float, most: float, cost: float) -> Verdict | None:
    """Which policy shall be in charge; None: all have failed. A challenger must beat the one in charge by the margin in most futures."""
    means = found.mean(axis=1)
    if not np.isfinite(means).any():
        return None
    best = int(np.argmin(means))
    if present is None or not math.isfinite(means[present]):
        return Verdict(best, float(means[best]), math.nan if present is None else float(means[present]), 1.0)
    stays = Verdict(present, float(means[present]), float(means[present]), 1.0)
    for challenger in np.argsort(means, kind="stable").tolist():
        if challenger == present or means[challenger] >= means[present]:
            break
        share = float((found[challenger] + cost < (1.0 - margin) * found[present]).mean())
        if share > most or share == 1.0:
            return Verdict(challenger, float(means[challenger]), float(means[present]), share)
    return stays


# --- what it remembers from one decision to the next --------------------------------------------------------------------
_MOST_SAID = 20
MOST = 200  # jobs of the past that are kept, to draw how others arrive


@dataclass
class Remembered:
    """`let_in` is the last row that admission let in, `seen` the last that was noticed; rows are numbered in order of arrival."""

    chosen: str = ""
    since: float = 0.0
    why: str = ""  # it was chosen
    asked_at: float = -math.inf  # when the last choice was made
    asked_decision: int = 0
    load: float = 0.0  # devices that were asked for then
    let_in: int = -1
    seen: int = -1
    decided: int = 0  # the number of the last decision that was made in time
    said: list[str] = field(default_factory=list)  # notes given to users, once each
    members: dict[str, object] = field(default_factory=dict)
    past: list[list[float]] = field(default_factory=list)  # arrival, devices, estimate

    @staticmethod
    def of(memory: Any) -> Remembered:
        """From the memory of the last plan."""
        return (
            Remembered()
            if memory is None
            else Remembered(**{**memory, "members": dict(memory["members"]), "past": list(memory["past"]), "said": list(memory["said"])})
        )

    def as_memory(self) -> dict[str, object]:
        """As the memory of the next."""
        return asdict(self)

    def lost_a_turn(self, snapshot: Snapshot) -> bool:
        """Whether the last decision was lost, or the first one: most likely rolling futures forward took too long, and would again.

        Then whatever is in charge decides at once, and the next choice is made when the next is due.
        """
        lost = snapshot.decision > self.decided + 1
        if lost and self.decided:
            self.asked_at, self.asked_decision = snapshot.now, snapshot.decision
        self.decided = snapshot.decision
        return lost

    def new_of(self, notes: Iterable[str]) -> list[str]:
        """The notes that are new; only a few are remembered."""
        found = [note for note in dict.fromkeys(notes) if note not in self.said][: _MOST_SAID - len(self.said)]
        self.said += found
        return found

    def notice(self, snapshot: Snapshot, keep: bool) -> None:
        """Jobs that are new belong to the past from which newcomers are drawn."""
        jobs = snapshot.jobs
        fresh = np.flatnonzero(jobs.rows > self.seen)
        if len(fresh):
            self.seen = int(jobs.rows[fresh].max())
            if keep:
                entries = zip(jobs.arrival[fresh].tolist(), jobs.gpus[fresh].tolist(), jobs.estimate[fresh].tolist())
                self.past = [*self.past, *([float(a), int(g), float(e)] for a, g, e in entries)][-MOST:]

    def admit(self, snapshot: Snapshot, limit: float) -> Bools:
        """Which jobs are held back, after as many as the limit (GPUs) allows were let in, in order of arrival, as `engine.advance` does."""
        jobs = snapshot.jobs
        outside = jobs.rows > self.let_in
        demand = float(jobs.gpus[~outside].sum())
        for place in np.flatnonzero(outside).tolist():
            if demand > limit:
                break
            demand += float(jobs.gpus[place])
            self.let_in = int(jobs.rows[place])
        return np.asarray(jobs.rows > self.let_in)


# --- the policy ---------------------------------------------------------------------------------------------------------
_SPENDING = {"dollars": "prices", "kwh": "power"}  # words that only the engine's futures have, and what they need
_BLOX = {"portfolio": ("las", "fifo", "srtf"), "admissions": ("accept-all", "load-limit:1.2", "load-limit:1.4")}


@dataclass(frozen=True)
class Synthesizer(Policy):
    """Rolls its portfolio forward from the present and lets the best combination decide."""

    name: ClassVar[str] = "synthesizer"
    paper: ClassVar[str] = "Agarwal et al.: Blox, A Modular Toolkit for Deep Learning Schedulers (EuroSys 2024), section 4.3"
    ties: ClassVar[str] = "equal scores: the policy in charge stays; at first, the earlier in the portfolio"

    portfolio: tuple[str, ...] = field(
        default=("fifo", "las", "srtf"), metadata={"help": "policies to choose from, with settings as in las(service=gpu-time)"}
    )
    admissions: tuple[str, ...] = field(
        default=("accept-all",), metadata={"help": "admission rules that each is tried behind: accept-all, load-limit:1.2"}
    )
    placements: tuple[str, ...] = field(
        default=(), metadata={"help": "placement rules that each is tried with: first-free, consolidated ...; none: the run's"}
    )
    objective: str = field(default="mean-jct", metadata={"help": "what is to be small: mean-jct, p95-jct, 0.7*mean-jct+0.3*worst-rho ..."})
    every: int = field(
        default=0,
        metadata={"help": "rounds between two choices; where decisions follow events, decisions; 0: ten, and one with compat=blox"},
    )
    load_change: float = field(
        default=0.0, metadata={"help": "choose sooner when the devices asked for have changed by this share; 0: never sooner"}
    )
    draws: int = field(default=0, metadata={"help": "futures of each combination, with drawn work; 0: one, with estimates as they are"})
    sigma: float = field(default=0.5, metadata={"help": "width of the log-normal around estimates, where work is drawn"})
    newcomers: str = field(default="none", metadata={"help": "jobs that may still come in a future: 'none', or 'past' (as others came)"})
    horizon: float = field(default=math.inf, metadata={"help": "seconds that futures reach; by default until all jobs have ended"})
    margin: float = field(default=0.02, metadata={"help": "share by which a challenger must be better than the one in charge"})
    most: float = field(default=0.5, metadata={"help": "share of futures in which it must be"})
    switch_cost: float = field(default=0.0, metadata={"help": "what a change costs, in the unit of the objective"})
    compat: str = field(default="", metadata={"help": "'blox': nine combinations, every round, no newcomers, mean JCT, no margin"})

    def __post_init__(self) -> None:
        if self.compat not in ("", "blox"):
            raise UsageError(f"compat is '{self.compat}'", where=WHERE, fix="use blox, or leave it out")
        if self.compat == "blox":
            usual = Synthesizer()
            bound = (*_BLOX, "placements", "objective", "newcomers", "margin", "draws")
            changed = [name for name in bound if getattr(self, name) not in (getattr(usual, name), {**_BLOX, "margin": 0.0}.get(name))]
            if changed:
                raise UsageError(f"compat=blox says what {changed[0]} is", where=WHERE, fix=f"leave out compat or {changed[0]}")
            for name, value in {**_BLOX, "margin": 0.0}.items():
                object.__setattr__(self, name, value)
        if self.every == 0:
            object.__setattr__(self, "every", 1 if self.compat else 10)
        if self.newcomers not in ("none", "past"):
            raise UsageError(f"newcomers is '{self.newcomers}'", where=WHERE, fix="use none or past")
        if not 0.0 <= self.margin < 1.0:
            told_why = f"margin is {self.margin:g}: nothing is better than another by its whole value"
            raise UsageError(told_why, where=WHERE, fix="use a share such as 0.02")
        for name, least in (("every", 1), ("draws", 0), ("load_change", 0.0), ("switch_cost", 0.0), ("sigma", 0.0)):
            if not getattr(self, name) >= least:
                raise UsageError(f"{name} is {getattr(self, name)}", where=WHERE, fix=f"use {least} or more")
        if not 0.0 <= self.most < 1.0:
            raise UsageError(f"most is {self.most:g}", where=WHERE, fix="use a share of futures from 0 to below 1")
        if not self.horizon > 0.0:
            raise UsageError(f"horizon is {self.horizon:g}", where=WHERE, fix="use seconds above zero")
        self._members()  # an impossible portfolio is refused
        self._check_objective()

    def _check_objective(self) -> None:
        """What the objective and the portfolio ask of each other."""
        words = Objective.parse(self.objective, WHERE)
        most = sum(weight for _, weight in words.terms) if words.is_sum else 1.0 if words.words == ("deadlines",) else math.inf
        if self.switch_cost >= most:
            text = f"switch_cost is {self.switch_cost:g}, and no change can gain more than {most:g}: none would ever be made"
            raise UsageError(text, where=WHERE, fix="use less")

    @property
    def _spends(self) -> bool:
        return any(word in _SPENDING for word in Objective.parse(self.objective, WHERE).words)

    def _members(self) -> tuple[Combination, ...]:
        return combinations(self.portfolio, self.admissions, self.placements)

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        columns = set[str]()
        if len(self._members()) > 1:
            known = {**_SPENDING, "deadlines": "some-deadline"}
            columns = {"remaining", *(known[word] for word in Objective.parse(self.objective, WHERE).words if word in known)}
        return frozenset(columns).union(*(one.policy.needs for one in self._members()))

    @property
    def ranks(self) -> bool:  # type: ignore[override]
        return all(one.policy.ranks for one in self._members())

    @property
    def shares_devices(self) -> bool:  # type: ignore[override]
        return all(one.policy.shares_devices for one in self._members())

    @property
    def names_devices(self) -> bool:  # type: ignore[override]
        return all(one.policy.names_devices for one in self._members())

    @property
    def keeps_reservations(self) -> bool:  # type: ignore[override]
        return all(one.policy.keeps_reservations for one in self._members())

    def only_starts(self) -> bool:
        return all(one.policy.only_starts() for one in self._members())

    def members(self) -> list[Policy]:
        return [one.policy for one in self._members()]

    def unread(self, regime: str) -> tuple[str, ...]:
        return () if self.draws else ("sigma",)

    def decide(self, snapshot: Snapshot) -> Plan:
        mind, notes = Remembered.of(snapshot.memory), []
        mind.notice(snapshot, self.newcomers == "past")
        members = self._members()
        names = [one.name for one in members]
        present = names.index(mind.chosen) if mind.chosen in names else None
        if len(members) == 1:
            present, mind.chosen = 0, names[0]
        elif mind.lost_a_turn(snapshot):
            notes += mind.new_of(["synthesizer: a decision was lost: no choice is made before the next is due"])
        elif self._is_due(snapshot, mind):
            verdict, reasons = self._choose(snapshot, mind, present)
            notes += reasons
            if verdict is not None and verdict.best != present:
                mind.why = self._why(verdict, names, mind, snapshot.now)
                present, mind.chosen, mind.since = verdict.best, names[verdict.best], snapshot.now
        chosen = members[present or 0]
        if mind.chosen != chosen.name:
            mind.chosen, mind.since, mind.why = chosen.name, snapshot.now, "the first of the portfolio, before there is anything to choose"
        return self._carry_out(snapshot, mind, chosen, notes)

    def _is_due(self, snapshot: Snapshot, mind: Remembered) -> bool:
        """Whether it is time for a choice; while nothing waits, there is nothing to choose."""
        jobs = snapshot.jobs
        if not len(jobs) or bool(jobs.running.all()):
            return False
        load = float(jobs.gpus.sum())
        if self.load_change and abs(load - mind.load) > self.load_change * max(mind.load, 1.0):
            return True
        if snapshot.round > 0.0:
            return snapshot.now >= mind.asked_at + self.every * snapshot.round - 1e-6
        return mind.asked_decision == 0 or snapshot.decision >= mind.asked_decision + self.every

    def _choose(self, snapshot: Snapshot, mind: Remembered, present: int | None) -> tuple[Verdict | None, list[str]]:
        """Roll everything forward and judge. Returns the verdict and notes for users."""
        members = self._members()
        mind.asked_at, mind.asked_decision, mind.load = snapshot.now, snapshot.decision, float(snapshot.jobs.gpus.sum())
        limited = any(math.isfinite(one.load_limit) for one in members)
        held = np.flatnonzero(snapshot.jobs.rows > mind.let_in).tolist() if limited else []
        until = snapshot.now + self.horizon
        candidates = [
            Candidate(one.policy, one.name, one.placement or None, one.admission, mind.members.get(one.member)) for one in members
        ]
        found = rollout(
            snapshot, candidates, draws=self.draws, until=until, newcomers=self._newcomers(snapshot, mind), seed=snapshot.seed,
            uncertainty=Uncertainty(self.sigma), held=held, spending=self._spends,
        )  # fmt: skip
        notes = mind.new_of(
            f"synthesizer: {one.policy} is left out of choices while it fails in its futures: {one.lost}" for one in found if one.lost
        )
        if all(one.lost for one in found):
            return None, notes
        objective = Objective.parse(self.objective, WHERE)
        try:
            judged = scores(snapshot, found.futures, objective, until, present or 0)
        except RefusedError as error:
            return None, mind.new_of([f"synthesizer: no choice is made: {error}"])
        return judge(judged, present, self.margin, self.most, self.switch_cost), notes

    def _newcomers(self, snapshot: Snapshot, mind: Remembered) -> Newcomers | None:
        """As the jobs came that were seen so far; none, before enough have come."""
        if self.newcomers == "none" or not tell_how_others_come([arrival for arrival, _, _ in mind.past]):
            return None
        jobs = tuple({"arrival": arrival, "gpus": gpus, "duration": work} for arrival, gpus, work in mind.past)
        span = 2.0 * float(snapshot.jobs.remaining @ snapshot.jobs.gpus) / max(snapshot.cluster.gpus, 1)
        largest = max((int(node.gpus) for node in snapshot.cluster.description.nodes), default=1)
        return LikeThePast(jobs, snapshot.now, min(span, self.horizon), largest)

    def _why(self, verdict: Verdict, names: list[str], mind: Remembered, now: float) -> str:
        """Why another combination is in charge from now on."""
        words = Objective.parse(self.objective, WHERE)
        spelled = (lambda value: f"{value:.3g}") if words.is_sum or WORDS[words.words[0]].unit != "s" else human_seconds
        if not mind.chosen or math.isnan(verdict.before):
            return f"{self.objective} {spelled(verdict.score)}, the least of {len(names)}"
        before = f"{mind.chosen}, in charge for {human_seconds(now - mind.since)} until now"
        if not math.isfinite(verdict.before):
            return f"{before}, fails in every future"
        won = f", better in {100 * verdict.share:.0f} % of {self.draws} futures" if self.draws > 1 else ""
        return f"{self.objective} {spelled(verdict.score)} instead of {spelled(verdict.before)} under {before}{won}"

    def _carry_out(self, snapshot: Snapshot, mind: Remembered, chosen: Combination, notes: list[str]) -> Plan:
        """The plan of the combination in charge; jobs that its admission rule holds back wait."""
        held = mind.admit(snapshot, chosen.load_limit * snapshot.cluster.gpus if math.isfinite(chosen.load_limit) else math.inf)
        policy = chosen.policy.for_regime(snapshot.regime)
        plan = policy.decide(replace(snapshot, memory=mind.members.get(chosen.member)))
        if plan.memory is not None:
            mind.members[chosen.member] = plan.memory
        if plan.ranking is not None and held.any():
            key = np.where(held, np.inf, plan.ranking.key)
            plan = replace(plan, ranking=replace(plan.ranking, key=key))
        if plan.ranking is not None and chosen.placement:
            plan = replace(plan, ranking=replace(plan.ranking, placement=chosen.placement))
        in_charge = InCharge(chosen.name, mind.since, mind.why) if len(self._members()) > 1 else None
        until = self._valid_until(snapshot, mind, plan)
        return replace(plan, memory=mind.as_memory(), valid_until=until, notes=(*plan.notes, *notes[:5]), in_charge=in_charge)

    def _valid_until(self, snapshot: Snapshot, mind: Remembered, plan: Plan) -> float | None:
        """As the plan says, but not beyond the next choice in rounds; on events nothing changes before the next one."""
        if plan.valid_until is None or len(self._members()) == 1 or not snapshot.round:
            return plan.valid_until
        due = mind.asked_at + self.every * snapshot.round
        return min(plan.valid_until, due) if due > snapshot.now else plan.valid_until
