"""The socket's method that says what a job file would become, and admits nothing."""

from attrs import frozen

from resumed.schemas.refusal import Refusal
from resumed.schemas.views import PreviewView

from .desk import Desk
from .grants import Role
from .peers import Peer


@frozen(kw_only=True)
class PreviewAsked:
    """A job file's text, and the name it is spoken of by (one that ends in `.toml` is TOML)."""

    file: str
    name: str = ""


@frozen(kw_only=True)
class PreviewAnswer:
    """What it would become."""

    preview: PreviewView


async def preview(desk: Desk, peer: Peer, asked: PreviewAsked) -> PreviewAnswer | Refusal:
    """What a job file would become: its items, and the programs of its first tries. Nothing is admitted."""
    found = await desk.jobs.rehearse(
        asked.file.encode(),
        name=asked.name or "the job file",
        requester=peer.person,
        may=lambda workflow: peer.permit.of_workflow(Role.SUBMITTER, workflow),
    )
    return found if isinstance(found, Refusal) else PreviewAnswer(preview=found)
