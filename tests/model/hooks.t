#!/bin/sh
# SPDX-License-Identifier: MIT
# Facts of one architecture stand in its family's files: other files do
# not have a published model's number of layers or an architecture's name, and
# the order of enumerators means nothing. Functions of one architecture are
# hooks of its row, and each is called from one place.
set -u
: "${srcdir:=.}"
n=0
status=0
verdict() # name, offenders
{
    n=$((n + 1))
    if test -z "$2"; then echo "ok $n - $1"
    else echo "not ok $n - $1"; echo "$2" | sed 's/^/# /'; status=1; fi
}
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
cd "$srcdir/lib" || exit 99
find model run eval convert -name '*.[ch]' ! -path '*/family/*' | sort >"$tmp/files"
sed -n 's/^ *{ \.name = "\([^"]*\)".*/\1/p' model/family/*.c | sort >"$tmp/names"
verdict 'at least 130 architectures have rows' \
    "$(awk 'END { if (NR < 130) print NR }' "$tmp/names")"

kinds='GG_(NORM|ORDER|QK|GATING|EXPERT|OUTPUT)_[A-Z]|GGUF_ROPE_[A-Z]'
verdict 'enumerators of the table are compared by == alone' "$(
    grep -v '^convert' "$tmp/files" | xargs grep -nE \
        "[<>]=? *\(?($kinds)|($kinds)[A-Z0-9_]*\)? *[<>]" |
        grep -v 'GGUF_ROPE_SCALING')"

sizes='n_(layer|vocab|expert|embd|head|ctx_train)'
verdict 'no size of a published model is outside its family' "$(
    xargs grep -nE "${sizes}\)? *([<>=!]=|[<>]) *[0-9]{2,}" <"$tmp/files")"

# Kinds of tokenizers share some of the names, and so do the way back to them
# and the types of projectors. general.architecture is never such a literal.
verdict 'no architecture is named outside its family' "$(
    sed 's/.*/"&"/' "$tmp/names" >"$tmp/quoted"
    grep -vE '^convert/(vocab/|back/back_vocab[.])|/projector_rows[.]c' \
        "$tmp/files" |
        xargs grep -nFf "$tmp/quoted")"

# GG_HOOK(type) name; or type (*name)(...): called as name.fn( or name(
verdict 'each hook is called from one place' "$(
    awk '/^struct gg_(arch|moe|model_qk_norm|model_windows) \{/ { on = 1 }
         /^}/ { on = 0 }
         on && match($0, /GG_HOOK\([a-z_]*\) [a-z_]*;/) {
             name = $2; sub(/;/, "", name); print name, name "[.]fn[(]" }
         on && match($0, /\(\*[a-z_]*\)\(/) {
             name = substr($0, RSTART + 2, RLENGTH - 4)
             print name, "arch->" name "[(]|a->" name "[(]" }' model/arch.h |
        sort >"$tmp/hooks"
    test "$(wc -l <"$tmp/hooks")" -ge 20 || echo "$(wc -l <"$tmp/hooks") hooks"
    while read -r name call; do
        k=$(xargs cat <"$tmp/files" | grep -cE "$call")
        test "$k" -eq 1 || echo "$name: $k calls"
    done <"$tmp/hooks")"
echo "1..$n"
exit $status
