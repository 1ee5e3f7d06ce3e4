"""What an attack may do to others, and what must be over when it is."""

import dataclasses

import calls
import watcher
from attack import BEFOREHAND, ENDED_BY

# A caller beside the attack waits no longer. Generous, for two busy cores: what is looked
# for are callers that are stopped, not that they are slowed down. Attacks that would stop
# them last longer than this (attack.HOLDING_SECONDS).
LONGEST_SECONDS = 6


@dataclasses.dataclass
class Seen:
    """What was measured of one attack."""
    case: object        # attack.Case
    begin: float        # of the attack, time.monotonic
    before: calls.Summary
    during: calls.Summary
    after: calls.Summary
    calls_during: list
    calls_after: list
    held_before: dict   # measures, as watcher.Watcher has them
    peak: dict
    held_after: dict
    settle_seconds: float
    outcome: dict       # of the attack itself: counts, faults and mistakes
    answered: bool      # every bystander's call ended
    alive: bool
    seconds: float = 0.0

    def violations(self):
        """Sentences; none where all held."""
        found = [*self._during(), *self._after(), *self._held()]
        found += [f"the server's answer: {fault}" for fault in self.outcome["faults"]]
        found += [f"the attack itself: {mistake}" for mistake in self.outcome["mistakes"]]
        return [f"{self.case.title}: {text}" for text in found]

    @property
    def attack(self):
        return self.case.attack

    def _during(self):
        if not self.alive:
            yield "the server's process has ended; it must go on"
            return
        if not self.answered:
            yield ("bystander's calls under way after the attack: some, 0 allowed once "
                   f"{calls.LONGEST_CALL_SECONDS} s have passed")
        if not any(count for what, count in self.outcome["counts"].items()
                   if not what.startswith((BEFOREHAND, ENDED_BY))):
            yield "things that the attack did: 0, at least 1 needed"
        if not self.calls_during:
            yield "bystander's calls during the attack: 0, at least 1 needed"
        for kind in calls.KINDS:
            mine = [c for c in self.calls_during if c["kind"] == kind]
            bad = [c for c in mine if c["status"] != "OK" and not self._may_be_refused(c)]
            if bad:
                yield (f"{kind} calls that failed during the attack: {len(bad)} of {len(mine)}, "
                       f"0 allowed; the first {bad[0]['begin'] - self.begin:.1f} s after its "
                       f"begin with {bad[0]['status']}: "
                       f"{bad[0].get('text', '')[:160]}")
            slowest = max((c["seconds"] for c in mine), default=0)
            if slowest > LONGEST_SECONDS:
                yield (f"longest {kind} call during the attack: {slowest:.1f} s, at most "
                       f"{LONGEST_SECONDS} s allowed")
            if wrong := [c["wrong"] for c in mine if c["wrong"]]:
                yield f"wrong {kind} answers: {len(wrong)}, 0 allowed; the first is {wrong[0]}"

    def _may_be_refused(self, call):
        attack = self.attack
        return (call["kind"] in attack.refused and calls.refused(call)
                and call["begin"] < self.begin + attack.refused_seconds)

    def _after(self):
        """Afterwards everybody is served, on old connections and on new ones."""
        for kind in calls.KINDS:
            mine = [c for c in self.calls_after if c["kind"] == kind]
            bad = [c for c in mine if c["status"] != "OK" or c["wrong"]]
            if bad:
                yield (f"{kind} calls that failed after the attack: {len(bad)} of {len(mine)}, "
                       f"0 allowed; the first with {bad[0]['status']} {bad[0]['wrong']} "
                       f"{bad[0].get('text', '')[:160]}")
            elif not mine:
                yield f"{kind} calls that ended after the attack: 0, at least 1 needed"

    def _held(self):
        for measure in watcher.MEASURES:
            if measure not in self.held_before:
                yield f"{measure} before the attack: never seen, at least 1 sample needed"
        for measure, value, bound in watcher.overshoots(self.held_before, self.held_after):
            yield (f"{measure} {self.settle_seconds:.0f} s after the attack: {value:,.0f}, at most "
                   f"{bound:,.0f} allowed ({self.held_before[measure]:,.0f} before it)")
        if self.attack.peak_mib and self.alive:
            rise = self.peak.get("RSS MiB", 0) - self.held_before.get("RSS MiB", 0)
            if rise > self.attack.peak_mib:
                yield (f"rise of RSS during the attack: {rise:.0f} MiB, at most "
                       f"{self.attack.peak_mib} MiB allowed")
