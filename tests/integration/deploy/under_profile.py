"""Runs a program under a seccomp profile of containers: under_profile.py PROFILE PROGRAM [ARGUMENT...]

libseccomp makes the filter from the profile, as it does for runc. Like runc, it leaves out names that this version of libseccomp
does not know. The program cannot get new privileges, as in a container with no-new-privileges.
"""

import json
import os
import sys

import pyseccomp

OPERATORS = {
    "SCMP_CMP_NE": pyseccomp.NE,
    "SCMP_CMP_LT": pyseccomp.LT,
    "SCMP_CMP_LE": pyseccomp.LE,
    "SCMP_CMP_EQ": pyseccomp.EQ,
    "SCMP_CMP_GE": pyseccomp.GE,
    "SCMP_CMP_GT": pyseccomp.GT,
    "SCMP_CMP_MASKED_EQ": pyseccomp.MASKED_EQ,
}
"""The operators of conditions."""

ARCHITECTURES = {"SCMP_ARCH_X86_64": pyseccomp.Arch.X86_64, "SCMP_ARCH_AARCH64": pyseccomp.Arch.AARCH64}
"""The architectures that a profile may name."""

UNKNOWN = -1
"""The number that libseccomp gives for a name that it does not know."""


def action(entry, name, errno):
    """The action of a call, or of all others. `errno` is the key of the error number."""
    return pyseccomp.ALLOW if entry[name] == "SCMP_ACT_ALLOW" else pyseccomp.ERRNO(entry[errno])


def condition(argument):
    """One condition on an argument of a call. For a mask, `value` is the mask and `valueTwo` the expected bits."""
    values = [argument["value"]]
    if argument["op"] == "SCMP_CMP_MASKED_EQ":
        values.append(argument["valueTwo"])
    return pyseccomp.Arg(argument["index"], OPERATORS[argument["op"]], *values)


def load(profile):
    """Installs the filter of a profile for this process."""
    other = action(profile, "defaultAction", "defaultErrnoRet")
    rules = pyseccomp.SyscallFilter(other)
    for name in profile["architectures"]:
        if not rules.exist_arch(ARCHITECTURES[name]):
            rules.add_arch(ARCHITECTURES[name])
    for entry in profile["syscalls"]:
        conditions = [condition(argument) for argument in entry.get("args", [])]
        for name in entry["names"]:
            if pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, name) != UNKNOWN:
                rules.add_rule(action(entry, "action", "errnoRet"), name, *conditions)
    rules.load()


with open(sys.argv[1], encoding="utf-8") as file:
    load(json.load(file))
os.execv(sys.argv[2], sys.argv[2:])
