#!/bin/sh
# SPDX-License-Identifier: MIT
# Files of ik_llama.cpp's types: the tensors have the bytes that its
# llama-quantize writes, built without contraction of products and sums.
#
# ../shared/golden/ik/files has digests of its runs on two models, which a script
# there makes. Left out: types whose encoders it shares with llama.cpp and has
# changed since (ours are llama.cpp's), BF16_R16, which it does not round, and
# presets that are llama.cpp's here (MXFP4) or have no encoder (IQ1_S_R4).
# GGUF_TEST_LONG=1 makes all runs, otherwise each GGUF_TEST_SAMPLE-th (16).
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
files=${GGUF_SHARED:-none}/golden/ik/files
if test ! -f "$files/runs.tsv"; then
    echo '1..0 # SKIP no files of ik_llama.cpp in ../shared'
    exit 0
fi
step=${GGUF_TEST_SAMPLE:-16}
test -z "${GGUF_TEST_LONG-}" || step=1

make_model() # name, arguments of the script
{
    name=$1
    shift
    for python in python3 /usr/bin/python3; do
        $python "$GGUF_SHARED/golden/tools/synthx.py" "$tmp/$name" "$@" \
            >"$tmp/out" 2>&1 && break
    done
    sha256sum <"$tmp/$name" | cut -d ' ' -f 1 >"$tmp/sum"
    "$AWK" -F '\t' -v m="$name" '$1 == m { print $2 }' "$files/models.tsv" |
        cmp -s - "$tmp/sum"
}

if ! make_model syn-p-f16.gguf llama embd=256 ff=512 layers=2 heads=4 kv=2 \
    vocab=512 seed=301 2>/dev/null ||
    ! make_model syn-m-f16.gguf llama embd=256 ff=256 layers=2 heads=4 kv=2 \
        vocab=512 experts=4 used=2 seed=302 2>/dev/null; then
    echo '1..0 # SKIP no Python with numpy for the models'
    exit 0
fi
q="$bin/gguf-quantize -q -f"

# run, tensor, type, digest
for m in p m pq pr; do
    tail -n +2 "$files/tensors-syn-$m.tsv" | cut -f 1,2,4,7
done >"$tmp/tensors"

# Print "n m": n tensors are equal, m were left out; and names that differ.
compare() # run, file, importance data
{
    "$bin/gguf-info" --hash "$2" | "$AWK" -v run="$1" -v data="$3" '
        function is_own(type) { # an encoder that is not the same
            sub(/_r(4|8|16)$/, "", type)
            if (type ~ /^(q6_k|iq4_nl|iq4_xs|iq1_[sm]|iq2_xx?s)$/)
                return 1
            return data != "-" && type ~ /^q([2345]_k|[45]_0)$/
        }
        FILENAME == "-" { sub(/.*:/, "", $3); got[$3] = $2; next }
        $1 != run { next }
        $3 == "bf16_r16" || is_own($3) { m++; next }
        got[$2] == $4 { n++; next }
        { print "# " run ": " $2 " " $3 }
        END { print n + 0, m + 0 }' - "$tmp/tensors"
}

# The inputs of two runs are outputs of others.
$q --imatrix="$files/imat-syn-p.dat" "$tmp/syn-p-f16.gguf" \
    "$tmp/syn-pq-f16.gguf" IQ4_K
$q "$tmp/syn-p-f16.gguf" "$tmp/syn-pr-f16.gguf" IQ3_K

options() # options of ik_llama.cpp
{
    set -- $1
    while test $# -gt 0; do
        case $1 in
        --pure) echo --pure ;;
        --repack) echo --repack-to=interleaved ;;
        --custom-q)
            echo "$2" | tr ',' '\n' | sed 's/^/--tensor-type=/'
            shift
            ;;
        --*-type)
            echo "$1=$2"
            shift
            ;;
        esac
        shift
    done
}

tab=$(printf '\t')
"$AWK" -F '\t' '$7 == "strict" && $8 == 0 && $5 !~ /slow/ &&
    $3 !~ /^(MXFP4|IQ1_[SM]_R4)/' "$files/runs.tsv" |
    "$AWK" -v step="$step" 'NR % step == 1 || step == 1' >"$tmp/runs"
n_runs=0 n_equal=0 n_left=0 wrong=0
while IFS=$tab read -r name model type data extra rest; do
    imatrix=
    test "$data" = - || imatrix=--imatrix=$files/$data
    case $extra in *--repack*) type=COPY ;; esac
    $q $imatrix $(options "$extra") "$tmp/$model" "$tmp/out.gguf" "$type" \
        2>"$tmp/err" || sed "s|^|# $name: |" "$tmp/err"
    compare "$name" "$tmp/out.gguf" "$data" >"$tmp/result"
    grep '^#' "$tmp/result" && wrong=$((wrong + 1))
    set -- $(tail -n 1 "$tmp/result")
    n_runs=$((n_runs + 1)) n_equal=$((n_equal + $1)) n_left=$((n_left + $2))
done <"$tmp/runs"
test $wrong -eq 0 -a $n_equal -gt $n_left -a $n_runs -gt 2
ok "$n_runs runs: $n_equal tensors have its bytes, $n_left are left out"
done_testing
