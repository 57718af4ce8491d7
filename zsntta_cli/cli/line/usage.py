"""What is said of wrong usage: in this program's words where a library below it has its own."""

import re
from collections.abc import Sequence
from typing import Any

from zsntta_cli.errors import first_of, near, short

LINE = f"{__name__}.line"  # in a context: the words of the line
_WHOLE = "must be a whole number"
_SEVERAL = ", a list such as 0,1,2 or a range such as 0-4"  # of an option that may be repeated
# What pydantic and click say of a value, and what follows its option and the value here.
_RULES = {
    r"Input should be a valid integer.*": _WHOLE,
    r"'.*' is not a valid int(eger)?( range)?": _WHOLE,
    r"Input should be a valid (number|float).*": "must be a number",
    r"'.*' is not a valid float( range)?": "must be a number",
    r"Input should be a valid boolean.*|'.*' is not a valid bool(ean)?": "must be true or false",
    r"Input should be greater than or equal to (?P<least>.+)": "must be at least {least}",
    r"Input should be greater than (?P<least>.+)": "must be more than {least}",
    r"Input should be less than or equal to (?P<most>.+)": "must be at most {most}",
    r"Input should be less than (?P<most>.+)": "must be less than {most}",
    r".* is not in the range x>=(?P<least>\S+)": "must be at least {least}",
    r".* is not in the range x<=(?P<most>\S+)": "must be at most {most}",
    r".* is not in the range (?P<least>\S+)<=x<=(?P<most>\S+)": "must be {least} to {most}",
    r"'.*' must be (?P<rule>.+)": "must be {rule}",
    r"(Value error, )?'.*' is not one of (?P<names>.+)": "must be one of: {names}",
}


# What click says of words that are missing, too many or unknown, and what is said here.
_WORDS = {
    r"No such command '(?P<name>.*?)'(\. Did you mean (?P<like>.+)\?)?": (
        "there is no command {name}"
    ),
    r"Option '(?P<name>.*?)' requires .*": "{name} needs a value",
    r"Option '(?P<name>.*?)' does not take a value": "{name} takes no value",
    r"Got unexpected extra arguments?(\(s\))? \((?P<name>.*)\)": "one argument too many: {name}",
    r"Missing argument '?(?P<name>.*?)'?": "an argument is missing: {name}",
    r"Missing option '?(?P<name>.*?)'?": "an option is missing: {name}",
}


def said_of(error: Any) -> str:
    """A sentence, without its full stop, on an error of usage that click or pydantic words."""
    if hasattr(error, "possibilities"):
        return (
            _of_methods(error)
            or _before_its_command(error)
            or _no_option(error.option_name, error.possibilities or ())
        )
    parameter = getattr(error, "param", None)
    message = str(error.message).rstrip(".")
    for theirs, ours in _RULES.items():
        if parameter is not None and (match := re.fullmatch(theirs, message, re.DOTALL)):
            rule = ours.format(**match.groupdict()).replace("'", "")
            several = _SEVERAL if rule == _WHOLE and getattr(parameter, "multiple", False) else ""
            return f"{_name(parameter)} is {_value(error, message)}, {rule}{several}"
    if hasattr(error, "param") and parameter is None and message:
        return message
    sentence = str(error.format_message()).replace("Value error, ", "").rstrip(".")
    for theirs, ours in _WORDS.items():
        if match := re.fullmatch(theirs, sentence, re.DOTALL):
            like = match.groupdict().get("like")
            question = f" (did you mean {like}?)" if like else ""
            name = match["name"].upper() if "argument is missing" in ours else match["name"]
            return ours.format(name=short(name)) + question
    return sentence


def _of_methods(error: Any) -> str:
    """What is said of a setting of a method that is typed as an option."""
    from zsntta_cli.simulation.runs import methods_with

    options = {name for p in error.ctx.command.params for name in p.opts} if error.ctx else ()
    name = error.option_name.strip("-")
    if "--set" in options and (having := methods_with(name)):
        return f"{name} is a setting of {first_of(having, 3)}: type --set {name}=VALUE"
    return ""


def _before_its_command(error: Any) -> str:
    """What is said of an option between the program and one of its commands."""
    commands = getattr(error.ctx and error.ctx.command, "commands", {})
    name = error.option_name
    for command in (word for word in error.ctx.meta.get(LINE, ()) if word in commands):
        if name in {option for parameter in commands[command].params for option in parameter.opts}:
            return f"{name} stands behind its command: {error.ctx.command_path} {command} {name}"
    return ""


def _no_option(name: str, close: Sequence[str]) -> str:
    """A sentence on an option that there is not; `close` are options of similar names."""
    dashless = [option.strip("-") for option in close]
    question = near(name.strip("-"), dashless).replace("mean '", "mean '--")
    return f"there is no option {short(name)}{question}"


def _name(parameter: Any) -> str:
    """What a parameter is called on the line."""
    name = parameter.opts[0] if parameter.opts else parameter.name
    return str(name if name.startswith("-") else name.upper())


def _value(error: Any, message: str) -> str:
    """The value that is wrong: pydantic has it beside its message, click has it within."""
    if cause := error.__cause__:
        return short(f"'{cause.errors()[0]['input']}'")
    if " is not in the range " in message:
        return short(f"'{message.partition(' ')[0]}'")
    quoted = re.match(r"(Value error, )?('.*?')( is not| must be)", message, re.DOTALL)
    return short(quoted[2]) if quoted else "of another kind"
