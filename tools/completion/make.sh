#!/bin/sh
# SPDX-License-Identifier: MIT
# make.sh SOURCES QUANTIZE PROGRAM... - the tools' completion, in ./completion
set -u
: "${AWK:=awk}"
sources=$1 quantize=$2
shift 2
mkdir -p completion/bash completion/zsh || exit 1
types=$("$quantize" --list-types | $AWK '{ printf "%s%s", s, $1; s = " " }')
for program; do
    case $program in
    */*) ;;
    *) program=./$program ;; # libtool gives paths of its wrappers alone
    esac
    tool=${program##*/}
    tool=${tool#lt-}
    AWK=$AWK "${CONFIG_SHELL-sh}" "$sources/options.sh" "$program" "$types" \
        >completion/options || exit 1
    operands=
    test "$tool" != gguf-quantize || operands=$types
    for shell in bash zsh; do
        out=completion/$shell/$tool
        test $shell = bash || out=completion/zsh/_$tool
        $AWK -v shell=$shell -v tool="$tool" -v types="$operands" \
            -f "$sources/write.awk" completion/options >"$out.tmp" &&
            mv "$out.tmp" "$out" || exit 1
    done
done
rm -f completion/options
