"""Code that the Python clients share: tools, prompts, questions and progress, and the report."""

from results import attempt, plain


class Recorder:
    """Records questions and progress, and answers the questions as the request says."""

    def __init__(self, request, types):
        self.answers, self.types = request["answers"], types
        self.questions, self.progress = [], []

    async def answer(self, _, params):
        """Answers one question by its message."""
        self.questions.append(plain(params))
        return self.types.ElicitResult(**self.answers[params.message])

    async def advance(self, progress, total, _):
        """Records one report of progress."""
        self.progress.append([progress, total])


async def report(client, request, types, error_of_server, recorder):
    """Makes the requests with `client`, and returns the report without the parts that clients name differently."""

    def attempts(work):
        return attempt(work, error_of_server)

    def complete(wanted):
        reference = types.PromptReference(type="ref/prompt", name=wanted["prompt"])
        return client.complete(reference, {"name": wanted["name"], "value": wanted["value"]})

    return {
        "listed_tools": plain(await client.list_tools())["tools"],
        "listed_prompts": plain(await client.list_prompts())["prompts"],
        "calls": [await attempts(client.call_tool(call["name"], call["arguments"])) for call in request["calls"]],
        "prompts": [await attempts(client.get_prompt(one["name"], one["arguments"])) for one in request["prompts"]],
        "completions": [await attempts(complete(wanted)) for wanted in request["completions"]],
        "slow": await attempts(client.call_tool(request["slow"], {}, progress_callback=recorder.advance)),
        "questions": recorder.questions,
        "progress": recorder.progress,
    }


def declared(capabilities):
    """The names of the capabilities that the server declared."""
    return [name for name in ("tools", "prompts", "completions") if getattr(capabilities, name) is not None]
