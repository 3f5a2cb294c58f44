#!/bin/sh
# SPDX-License-Identifier: MIT
# options.sh PROGRAM TYPES - prints a tool's options, for completion
#
# Prints a line for each option in PROGRAM's --help: names, argument, kind of
# argument, its words and the help, separated by tabs. Kinds are "flag",
# "words", "file" and "other"; "?" after the kind: the argument may be left
# out. Words are those that the program names when it is given none of them;
# for TYPE, if it names none, TYPES.
set -u
LC_ALL=C
export LC_ALL
program=$1 types=$2
: "${AWK:=awk}"
tab=$(printf '\t')

rows() # names, argument, help
{
    "$program" --help=all | $AWK '
    function flush() {
        if (names != "")
            printf "%s\t%s\t%s\n", names, arg, help
        names = arg = help = ""
    }
    /^  ( |-)/ && match($0, /^ *-/) && RLENGTH <= 7 {
        flush()
        sub(/^ */, "")
        left = $0
        if (match(left, /  +/)) {
            help = substr(left, RSTART + RLENGTH)
            left = substr(left, 1, RSTART - 1)
        }
        n = split(left, part, ", ")
        for (i = 1; i <= n; i++) {
            name = part[i]
            if (match(name, /[\[= ]/)) {
                arg = substr(name, RSTART)
                name = substr(name, 1, RSTART - 1)
            }
            names = names (i > 1 ? " " : "") name
        }
        next
    }
    /^         / && names != "" {
        sub(/^ */, "")
        help = help (help == "" ? "" : " ") $0
        next
    }
    { flush() }
    END { flush() }'
}

rows | while IFS= read -r row; do
    names=${row%%"$tab"*} row=${row#*"$tab"}
    arg=${row%%"$tab"*} help=${row#*"$tab"}
    maybe=
    case $arg in
    '')
        printf '%s\t\tflag\t\t%s\n' "$names" "$help"
        continue
        ;;
    '[='*) maybe='?' arg=${arg#??} arg=${arg%]} ;;
    *) arg=${arg#?} ;;
    esac
    # "...: '?' is not 'a', 'b' or 'c' (try ...)"
    words=$("$program" "${names##* }=?" </dev/null 2>&1 |
        sed -n "s/ (try .*//; s/.*'?' is not '/'/p" |
        $AWK -F "'" '{ for (i = 2; i <= NF; i += 2)
                          printf "%s%s", (i > 2 ? " " : ""), $i }')
    test "$arg" != TYPE || words=${words:-$types}
    kind=other
    case $arg in
    MODEL | TEXT | FILE* | LOGITS | PATH | DIR* | OUT* | PART) kind=file ;;
    esac
    case $names in
    *--include* | *--exclude* | *--chat-template*) kind=other ;;
    esac
    test -z "$words" || kind=words
    printf '%s\t%s\t%s%s\t%s\t%s\n' "$names" "$arg" "$kind" "$maybe" "$words" \
        "$help"
done
