"""Everything that is found by a name: general parts, those of published systems, and what installed packages bring.

A package has one `Register` per kind of thing, with its general entries. Systems name their parts in a manifest
(`systems/NAME/manifest.py`, a `System`), other packages by entry points in the group of the kind, or a manifest of their own in the group
``gantline.systems``:

    [project.entry-points."gantline.policies"]
    youngest = "youngest.policy:Youngest"

Nothing is imported before it is asked for by its name. Manifests are read when a name is not general, entry points where some package has
any. A name means one thing: where two packages bring it, every use of that name is refused, and so is every list that would show it.
"""

from __future__ import annotations

import os
import pkgutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib import import_module
from typing import Any, TypeVar

from gantline.core.errors import NotFoundError, UsageError, near

#: kind of a register, and of a mapping in a manifest -> what one of them is called; the group of entry points is "gantline.KIND"
KINDS = {
    "policies": "policy",
    "regimes": "regime",
    "imitations": "imitation",
    "scopes": "scope of an imitation",
    "importers": "trace format",
    "generators": "generator",
    "studies": "study",
    "performance_models": "performance model",
    "profile_readers": "reader of profiles",
    "placements": "placement rule",
    "fillings": "scheme of a filling",
    "executors": "executor",
    "runners": "executor of a service",
}

#: "module:attribute", or the same with half a line on what it is; in a manifest a leading dot means the folder of the manifest
Place = str | tuple[str, str]
Folders = tuple[str, ...]


_STANDARD_LIBRARY = f"python{sys.version_info.major}{sys.version_info.minor}.zip"

Made = TypeVar("Made")


@dataclass(frozen=True)
class HeldAgainst:
    """What a system of ours was compared with, how far the two agree, and the test that checks it."""

    what: str
    result: str
    test: str


@dataclass(frozen=True, kw_only=True)
class System:
    """The manifest of a published system: what it brings, by kind and name, and what it was held against."""

    name: str
    title: str
    papers: tuple[str, ...]
    page: str = ""
    """Its page, from the folder `docs/`."""
    policies: Mapping[str, Place] = field(default_factory=dict)
    regimes: Mapping[str, Place] = field(default_factory=dict)
    imitations: Mapping[str, Place] = field(default_factory=dict)
    """Regime -> the loop that runs it in place of the engine."""
    scopes: Mapping[str, Place] = field(default_factory=dict)
    """Regime -> what its imitation reads of a run."""
    importers: Mapping[str, Place] = field(default_factory=dict)
    generators: Mapping[str, Place] = field(default_factory=dict)
    studies: Mapping[str, Place] = field(default_factory=dict)
    performance_models: Mapping[str, Place] = field(default_factory=dict)
    profile_readers: Mapping[str, Place] = field(default_factory=dict)
    """Regime or performance model -> what reads the folder of its profiles."""
    placements: Mapping[str, Place] = field(default_factory=dict)
    fillings: Mapping[str, Place] = field(default_factory=dict)
    """How published filling experiments order their pods and count scores."""
    executors: Mapping[str, Place] = field(default_factory=dict)
    """What carries orders out in a simulation."""
    runners: Mapping[str, Place] = field(default_factory=dict)
    """What carries orders out for a service."""
    also_called: Mapping[str, str] = field(default_factory=dict)
    """What people call a trace format -> its name here."""
    in_steps: tuple[str, ...] = ()
    """Its formats and generators whose jobs are given in steps, so that a table of throughputs makes seconds of them."""
    held_against: tuple[HeldAgainst, ...] = ()
    package: str = ""
    """The package that its places with a leading dot are in; filled in when the manifest is read."""
    brought_by: str = "gantline"

    def entries(self, kind: str) -> Iterator[Registered]:
        """What it brings of this kind."""
        given: Mapping[str, Place] = getattr(self, kind)
        for name, place in given.items():
            target, summary = (place, "") if isinstance(place, str) else place
            whole = f"{self.package}{target}" if target.startswith(".") else target
            yield Registered(name, whole, summary, self.brought_by, self.name)


@dataclass(frozen=True)
class Registered:
    """A registered thing: where it is defined, what it is, and which package and system it comes from."""

    name: str
    target: str
    summary: str = ""
    brought_by: str = "gantline"
    system: str = ""


@dataclass(frozen=True, eq=False)
class Register:
    """All things of one kind by name."""

    kind: str
    general: Mapping[str, Place]
    where: str = ""
    """The option that names one, for messages."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Second names, which lists do not show and which no package may take."""

    def own(self) -> dict[str, Registered]:
        """Those of this package: general ones first, then system by system."""
        return _own(self)

    def entries(self) -> dict[str, Registered]:
        """Those of this package and of installed ones; two of one name are refused."""
        own = self.own()
        foreign = _known_foreign(self.kind, True, tuple(sys.path))
        found = self._joined({**own, **{alias: own[name] for alias, name in self.aliases.items()}}, foreign)
        return {name: entry for name, entry in found.items() if name not in self.aliases}

    def names(self) -> list[str]:
        return list(self.entries())

    def find(self, name: str) -> Registered | None:
        """The entry of that name; one that two packages bring is refused. Other names are not looked at."""
        called = self.aliases.get(name, name)
        ours = _entry(called, self.general[called]) if called in self.general else self.own().get(called)
        if not has_foreign():
            return ours
        foreign = [entry for entry in _known_foreign(self.kind, ours is None, tuple(sys.path)) if entry.name == name]
        return self._joined({} if ours is None else {name: ours}, foreign).get(name)

    def load(self, name: str) -> Any:
        """The thing itself; an unknown name is refused."""
        found = self.find(name)
        if found is None:
            raise NotFoundError(f"no {KINDS[self.kind]} '{name}'", where=self.where, fix=near(name, self.entries()))
        return load_target(found, KINDS[self.kind])

    def _joined(self, found: dict[str, Registered], more: list[Registered]) -> dict[str, Registered]:
        for entry in more:
            other = found.get(entry.name)
            if other is not None and other.target != entry.target:
                what = f"two things are called {KINDS[self.kind]} '{entry.name}': {_origin(other)} and {_origin(entry)}"
                raise UsageError(what, where=self.where, fix="rename one, or uninstall the package that brings it")
            found[entry.name] = entry
        return found


def load_target(entry: Registered, noun: str) -> object:
    """The object at ``module:attribute``."""
    module, _, attribute = entry.target.partition(":")
    if entry.brought_by == "gantline":
        return getattr(import_module(module), attribute)
    try:
        found = import_module(module)
        for name in attribute.split("."):
            found = getattr(found, name)
    except Exception as error:  # whatever the code of another package raises
        what = f"{noun} '{entry.name}' cannot be loaded: {type(error).__name__}: {error}"
        raise UsageError(what, where=f"package {entry.brought_by}", fix=f"correct {entry.target} there, or uninstall it") from error
    return found


def of_kind(made: object, kind: type[Made], maker: str) -> Made:
    """What a registered function has made, which must be of the kind that was asked for."""
    if not isinstance(made, kind):
        raise UsageError(
            f"made a value of type {type(made).__name__}, not a {kind.__name__}", where=maker, fix="correct the package that brings it"
        )
    return made


def list_systems() -> list[System]:
    """The published systems, ours and those of installed packages, by name."""
    found = {system.name: system for system in own_systems()}
    for system in _installed_systems():
        if system.name in found:
            what = f"two systems are called '{system.name}': that of {found[system.name].brought_by} and that of {system.brought_by}"
            raise UsageError(what, fix="rename one, or uninstall the package that brings it")
        found[system.name] = system
    return [found[name] for name in sorted(found)]


def find_system(name: str) -> System:
    """The manifest of one system."""
    systems = {system.name: system for system in list_systems()}
    if name not in systems:
        raise NotFoundError(f"no system '{name}'", fix=near(name, systems))
    return systems[name]


@cache
def own_systems() -> tuple[System, ...]:
    """The manifests of the folders in `systems/`: adding a system is adding a folder."""
    home = import_module("gantline.systems")
    folders = sorted(module.name for module in pkgutil.iter_modules(home.__path__) if module.ispkg)
    return tuple(_read(f"{home.__name__}.{name}.manifest", "SYSTEM", "gantline") for name in folders)


def _read(module: str, attribute: str, brought_by: str) -> System:
    from dataclasses import replace

    manifest = load_target(Registered(attribute, f"{module}:{attribute}", brought_by=brought_by), "manifest")
    if not isinstance(manifest, System):
        raise UsageError(f"{module}:{attribute} is a {type(manifest).__name__}, not a System", where=f"package {brought_by}")
    return replace(manifest, package=module.rpartition(".")[0], brought_by=brought_by)


@cache
def _own(register: Register) -> dict[str, Registered]:
    found = {name: _entry(name, place) for name, place in register.general.items()}
    return register._joined(found, [entry for system in own_systems() for entry in system.entries(register.kind)])


def _installed_systems(broken_too: bool = True) -> list[System]:
    """The manifests that other packages bring; one that cannot be read is refused, or left out."""
    found = []
    for point in _points("systems"):
        module, _, attribute = point.value.partition(":")
        try:
            found.append(_read(module, attribute, _package(point)))
        except UsageError:
            if broken_too:
                raise
    return found


def _foreign(kind: str, broken_too: bool = True) -> list[Registered]:
    """What other packages bring of a kind. A foreign manifest that cannot be read does not affect names of ours."""
    named = [Registered(point.name, point.value, f"of package {_package(point)}", _package(point)) for point in _points(kind)]
    return [entry for system in _installed_systems(broken_too) for entry in system.entries(kind)] + named


@lru_cache(maxsize=64)
def _known_foreign(kind: str, broken_too: bool, where: Folders) -> list[Registered]:
    return _foreign(kind, broken_too)


def has_foreign() -> bool:
    """Whether an installed package brings anything. Installed while this process runs, it is found by the next one."""
    return _any_foreign(tuple(sys.path))


@lru_cache(maxsize=4)
def _any_foreign(where: Folders) -> bool:
    """Whether an installed package brings anything: checks its files, five times faster than reading all entry points."""
    for folder in (folder or "." for folder in where):
        if os.path.isfile(folder) and os.path.basename(folder) != _STANDARD_LIBRARY:
            return True  # packages in an archive: what they bring is known when their entry points are read
        try:
            packages = [name for name in os.listdir(folder) if name.endswith((".dist-info", ".egg-info"))]
        except OSError:
            continue
        for name in packages:
            try:
                with open(os.path.join(folder, name, "entry_points.txt"), "rb") as file:
                    if b"[gantline." in file.read():
                        return True
            except OSError:
                continue
    return False


def _points(kind: str) -> list[Any]:
    """The entry points of a group, each once, although a package may be found on two paths."""
    if not has_foreign():
        return []  # reading what every installed package announces takes 14 ms of CPU time
    from importlib.metadata import entry_points  # not above: it takes longer to import than everything else here

    return sorted({(point.name, point.value): point for point in entry_points(group=f"gantline.{kind}")}.values(), key=lambda one: one.name)


def _package(point: Any) -> str:
    return point.dist.name if point.dist else "?"


def _entry(name: str, place: Place) -> Registered:
    target, summary = (place, "") if isinstance(place, str) else place
    return Registered(name, target, summary)


def _origin(entry: Registered) -> str:
    return f"{entry.target} of package '{entry.brought_by}'" if entry.brought_by != "gantline" else f"{entry.target} of gantline"
