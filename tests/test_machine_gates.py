"""Laws that hold in every history of people at a gate: nothing goes out but on a yes as of today."""

from collections import Counter
from collections.abc import Callable

from attrs import define, evolve, field
from effects_kit import CALL, TOOL, Ledger, asked, call
from gates_kit import ADA, BO, CURATORS, CY, EVE, OLA, ROLES
from hypothesis import given, settings
from hypothesis import strategies as st
from machine_kit import ANNA, folded

from resumed.actors.machine import asks
from resumed.actors.machine.verdict import Verdict
from resumed.schemas import decisions, events, keys
from resumed.schemas.approvals import ApprovalRule, Facts, Member, Standing
from resumed.schemas.instant import seconds_between
from resumed.schemas.job import Budget, Person
from resumed.schemas.ledger import SETTLED, EffectState, ErrandKind
from resumed.schemas.limits import Limits
from resumed.schemas.snapshot import Entry

PEOPLE = (BO, CY, BO, CY, ADA, EVE, OLA)
"""Those who may say yes are drawn more often."""
RULE = ApprovalRule(
    by=("group:curators",), quorum=2, not_requester=True, decide_within=1000.0, valid_for=300.0
)
RULES = (RULE, evolve(RULE, valid_for=200.0), evolve(RULE, quorum=1), evolve(RULE, not_requester=False))
TIMES = (0.0, 1.0, 99.0, 200.0, 300.0, 1000.0)


@define(eq=False)
class History:
    """A job at its gate, and what an onlooker knows of it, kept apart from the law's own records."""

    play: Ledger
    rule: ApprovalRule = RULE
    curators: set[int] = field(factory=lambda: {ADA.uid, BO.uid, CY.uid})
    access: bool = True
    names: bool = True
    yeses: dict[int, tuple[float, str]] = field(factory=dict)
    """Whose last word was yes: when, and under which rule."""
    refused: bool = False
    sent: int = 0
    told: Counter[str] = field(factory=Counter)

    @property
    def seconds(self) -> float:
        """Since the job came in."""
        return seconds_between(self.play.snapshot.job.created, self.play.now)

    def facts(self, *people: Person) -> Facts:
        """What a shell would find out now."""
        every = people or PEOPLE
        return Facts(
            rule=self.rule,
            policy=keys.policy(self.rule),
            members=(Member(who="group:curators", number=CURATORS),),
            people=tuple(
                Standing(uid=who.uid, gids=self.groups(who), roles=ROLES.get(who.uid, ()))
                for who in dict.fromkeys(every)
            ),
            requester=self.access,
            requester_uid=ADA.uid,
            problem="" if self.names else "away",
        )

    def groups(self, who: Person) -> tuple[int, ...]:
        """Somebody's groups, as the host has them today."""
        return (who.gid, CURATORS) if who.uid in self.curators else (who.gid,)

    def tell(self, name: str, event: events.Event) -> Verdict:
        """Tell the law, and count what came of it."""
        verdict = self.play.tell(event)
        self.told[f"{name} {type(verdict).__name__}"] += 1
        return verdict

    # ---- steps ------------------------------------------------------------------------------------------

    def approve(self, who: Person, _: int) -> None:
        """Somebody says yes to it as it stands."""
        event = events.Approve(
            by=who, subject=CALL, fingerprint=self.play.effect().fingerprint, facts=self.facts(who)
        )
        if isinstance(self.tell("approve", event), Entry):
            assert who.uid in self.curators
            assert self.names
            self.yeses[who.uid] = (self.seconds, keys.policy(self.rule))

    def deny(self, who: Person, _: int) -> None:
        """Somebody says no."""
        event = events.Deny(
            by=who, subject=CALL, fingerprint=self.play.effect().fingerprint, facts=self.facts(who)
        )
        self.refused |= isinstance(self.tell("deny", event), Entry)

    def revoke(self, who: Person, _: int) -> None:
        """Somebody takes a yes back: an operator that of everybody."""
        event = events.Revoke(by=who, subject=CALL, facts=self.facts(who))
        if isinstance(self.tell("revoke", event), Entry):
            for uid in [who.uid] if who is not OLA else list(self.yeses):
                self.yeses.pop(uid, None)

    def extend(self, _: Person, number: int) -> None:
        """The job may use more."""
        usd = str(10 + len(self.play.lines) + number)
        if isinstance(self.tell("extend", events.Extend(by=ANNA, usd=usd, allowed=Limits())), Entry):
            self.yeses.clear()

    def waits(self, _: Person, number: int) -> None:
        """Time passes, and is looked at."""
        self.play.wait(TIMES[number % len(TIMES)])
        self.tell("tick", events.Tick())

    def late(self, _: Person, number: int) -> None:
        """Time passes, and nobody looks."""
        self.play.wait(TIMES[number % len(TIMES)])

    def changes(self, who: Person, number: int) -> None:
        """Something of the world changes: the rule, a group, the requester's access, the names service."""
        if number % 4 == 0:
            self.rule = RULES[(RULES.index(self.rule) + 1) % len(RULES)]
        elif number % 4 == 1:
            self.curators ^= {who.uid}
        elif number % 4 == 2:
            self.access = not self.access
        else:
            self.names = not self.names

    def lets_go(self, _: Person, number: int) -> None:
        """A slot is given where one is wanted; the target answers, or nothing was sent."""
        play = self.play
        if play.wants() is not ErrandKind.SEND:
            return
        if play.grant(CALL, self.facts()) not in ("sent", "sent again"):
            return
        self.allowed()
        self.sent += 1
        if number % 2:
            play.says(CALL, decisions.NotSent(reason="no route"))
            self.sent -= 1
        else:
            play.says(CALL, decisions.Landed(reference="p1"))

    # ---- the laws ---------------------------------------------------------------------------------------

    def allowed(self) -> None:
        """What must be so wherever something is let go, by what the onlooker saw."""
        good = [
            uid
            for uid, (at, policy) in self.yeses.items()
            if self.seconds - at < self.rule.valid_for
            and policy == keys.policy(self.rule)
            and uid in self.curators
            and not (self.rule.not_requester and uid == ADA.uid)
        ]
        assert len(good) >= self.rule.quorum, (good, self.yeses, self.rule)
        assert self.access
        assert self.names
        assert not self.refused

    def looked_at(self) -> None:
        """What must be so at every moment."""
        effect, snapshot = self.play.effect(), self.play.snapshot
        assert self.sent <= 1
        assert (self.sent == 1) == (effect.state is EffectState.CONFIRMED)
        for row in snapshot.approvals:
            assert (row.spent is None) == (row.operation_key == "")
            assert row.operation_key in ("", effect.operation_key)
            assert effect.fingerprint == row.fingerprint
            assert effect.gate is not None
            assert row.round <= effect.gate.round
        listed = [each.subject for each in asks.asks(snapshot, self.play.now)]
        waits = effect.state not in SETTLED and effect.gate is not None and effect.gate.met is None
        assert ([CALL] if waits else []) == listed


STEPS: tuple[Callable[[History, Person, int], None], ...] = (
    *(History.approve, History.approve, History.approve, History.lets_go, History.lets_go),
    *(History.waits, History.late, History.changes, History.changes, History.extend),
    *(History.revoke, History.deny),
)


def lived(steps: list[tuple[int, int, int]]) -> History:
    """The history that these steps make."""
    tool = evolve(TOOL, approve=RULE)
    history = History(asked(call(), tools=(tool,), budget=Budget(usd="10")))
    for step, who, number in steps:
        STEPS[step](history, PEOPLE[who], number)
        history.looked_at()
    return history


DRAWN = st.lists(
    st.tuples(st.integers(0, len(STEPS) - 1), st.integers(0, len(PEOPLE) - 1), st.integers(0, 11)),
    max_size=60,
)


@settings(max_examples=150, deadline=None)
@given(DRAWN)
def test_nothing_is_let_go_but_on_a_yes_that_would_be_given_today(steps: list[tuple[int, int, int]]) -> None:
    """Whatever people and the world do, and in whichever order: an onlooker agrees with every dispatch, and
    the files tell the same as the law."""
    history = lived(steps)

    assert folded(history.play.lines) == history.play.snapshot


def test_histories_reach_what_they_are_for() -> None:
    """Walked to, not drawn: two allow it, it is not sent, and then it is; and each way in which it is not."""
    bo, cy, ola = PEOPLE.index(BO), PEOPLE.index(CY), PEOPLE.index(OLA)
    approve, lets_go, waits, late, changes, extend, revoke, deny = 0, 3, 5, 6, 7, 9, 10, 11
    both = [(approve, bo, 0), (approve, cy, 0)]
    walks = {
        "sent": [*both, (lets_go, 0, 1), (waits, 0, 2), (lets_go, 0, 0)],
        "expired": [*both, (waits, 0, 4), (lets_go, 0, 0)],
        "expired, and nobody looked": [*both, (late, 0, 4), (lets_go, 0, 0)],
        "another rule": [*both, (changes, 0, 0), (lets_go, 0, 0)],
        "left the group": [*both, (changes, bo, 1), (lets_go, 0, 0)],
        "no access": [*both, (changes, 0, 2), (lets_go, 0, 0)],
        "no names": [*both, (changes, 0, 3), (lets_go, 0, 0)],
        "extended": [*both, (extend, 0, 0), (lets_go, 0, 0)],
        "taken back": [*both, (revoke, ola, 0), (lets_go, 0, 0)],
        "denied": [(approve, bo, 0), (deny, cy, 0), (lets_go, 0, 0)],
    }

    assert {name: int(name == "sent") for name in walks} == {
        name: lived(steps).sent for name, steps in walks.items()
    }
