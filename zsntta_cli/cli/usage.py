"""What is said of wrong usage: in this program's words where a library below it has its own."""

import re
from typing import Any

from zsntta_cli.errors import short

# Options that other programs have, and what does it here.
_MEANT = {
    "--lr": "the learning rate is --learning-rate, or --tent-learning-rate",
    "--config": "zsntta run FILE runs a file of settings",
    "--noise-ratio": "the noise ratio is --ratio",
}
# What pydantic and click say of a value, and what follows its option and the value here.
_RULES = {
    r"Input should be a valid integer.*": "must be a whole number",
    r"'.*' is not a valid int(eger)?( range)?": "must be a whole number",
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


def said_of(error: Any) -> str:
    """A sentence, without its full stop, on an error of usage that click or pydantic words."""
    if meant := _MEANT.get(getattr(error, "option_name", "")):
        return f"there is no option {error.option_name}: {meant}"
    parameter = getattr(error, "param", None)
    message = str(error.message).rstrip(".")
    for theirs, ours in _RULES.items():
        if parameter is not None and (match := re.fullmatch(theirs, message, re.DOTALL)):
            rule = ours.format(**match.groupdict()).replace("'", "")
            return f"{_name(parameter)} is {_value(error, message)}, {rule}"
    is_ours = hasattr(error, "param") and parameter is None and message
    return message if is_ours else str(error.format_message()).replace("Value error, ", "")


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
