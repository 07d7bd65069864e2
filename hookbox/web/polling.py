"""What `hookbox poll` asks of the running server. Only through the socket."""

from dataclasses import asdict

from hookbox.runtime import Runtime
from hookbox.web.actions import Action, Fields


def poll_actions(runtime: Runtime) -> dict[str, Action]:
    """Action name -> what it does."""

    async def poll(fields: Fields) -> Fields:
        begin = fields.get("begin")
        return asdict(await runtime.pollers.ask(str(fields["source"]), begin and str(begin)))

    async def close_gaps(fields: Fields) -> Fields:
        return {"closed": await runtime.pollers.close_gaps(str(fields["source"]))}

    return {"poll": poll, "poll.close_gaps": close_gaps}
