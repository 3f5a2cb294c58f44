#!/bin/sh
# SPDX-License-Identifier: MIT
# gguf-ppl --hellaswag, --winogrande, --multiple-choice: output, files of
# tasks, and refused ones.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
ppl=$bin/gguf-ppl
m=$srcdir/share/tiny-llama/tiny-llama-f16.gguf
if test ! -f "$m"; then
    skip 'tasks' 'no model in share/'
    done_testing
    exit
fi
cat >"$tmp/six" <<'END'
She had been long persuaded
1
by a table and a spoon
to think of the connexion
of seven hundred hills
under no water
Sir Walter Elliot was a man
0
who never took up any book
which ran
that the of and
green
END
cat >"$tmp/six.jsonl" <<'END'
{"ctx": "She had been long persuaded", "endings": ["by a table and a spoon", "to think of the connexion", "of seven hundred hills", "under no water"], "label": "1"}
{"ctx": "Sir Walter Elliot was a man", "endings": ["who never took up any book", "which ran", "that the of and", "green"], "label": 0}
END
run "$ppl" -m "$m" -f "$tmp/six" --hellaswag
test $rc -eq 0 -a ! -s "$tmp/err" && grep -q '^tasks .*HellaSwag, 2 of 2' "$tmp/out" &&
    grep -q '^HellaSwag: [0-9.]*% +/- [0-9.]* ([0-2] of 2), 95%: ' "$tmp/out" &&
    grep -q '^chance *25.0000%$' "$tmp/out"
ok '--hellaswag'
"$bin/gguf-quantize" -q "$m" "$tmp/q8.gguf" Q8_0
run "$ppl" -m "$tmp/q8.gguf" -f "$tmp/six" --hellaswag --precision int16
test $rc -eq 0 -a ! -s "$tmp/err" && grep -q '^mode *int16 (' "$tmp/out" &&
    grep -q '^HellaSwag: [0-9.]*% ' "$tmp/out"
ok '--precision int16: the mode is named'
run "$ppl" -q -j -m "$tmp/q8.gguf" -f "$tmp/six" --hellaswag
grep '"scores"' "$tmp/out" >"$tmp/exact"
run "$ppl" -q -j -m "$tmp/q8.gguf" -f "$tmp/six" --hellaswag --precision int16
grep -q '"precision": "int16"' "$tmp/out" &&
    grep '"scores"' "$tmp/out" >"$tmp/int16" && ! cmp -s "$tmp/exact" "$tmp/int16"
ok 'by JSON, too, and the scores are not those of exact'
run "$ppl" -q -j -m "$m" -f "$tmp/six" --hellaswag -t 1
grep -v '"seconds"\|"file"\|"size"\|"threads"\|"digest"\|"batch_size"' "$tmp/out" >"$tmp/j1"
grep -q '"task": "hellaswag"' "$tmp/out" && grep -q '"accuracy_low": ' "$tmp/out" &&
    test "$(grep -c '"scores": \[.*, .*, .*, .*\]' "$tmp/out")" -eq 2
ok '--json'
if python3 -c '' 2>/dev/null; then
    python3 -m json.tool "$tmp/out" >/dev/null 2>"$tmp/err"
    ok 'it is JSON'
fi
run "$ppl" -q -j -m "$m" -f "$tmp/six.jsonl" --hellaswag -t 3 -ub 8
grep -v '"seconds"\|"file"\|"size"\|"threads"\|"digest"\|"batch_size"' "$tmp/out" |
    sed 's/"ubatch_size": 8/"ubatch_size": 512/' >"$tmp/j2"
test $rc -eq 0 && cmp -s "$tmp/j1" "$tmp/j2"
ok 'the same tasks as JSON lines, other threads and batches: the same digits'
gzip -c "$tmp/six" >"$tmp/six.gz" 2>/dev/null &&
    run "$ppl" -q -m "$m" -f - --hellaswag --hellaswag-tasks 1 <"$tmp/six.gz"
test $rc -eq 0 && grep -q 'HellaSwag, 1 of 2' "$tmp/out"
ok 'one of them, compressed, from standard input'
printf '%s\n' '0,"Anne heard Mary, for _ was loud.",she,it,1' >"$tmp/csv"
run "$ppl" -q -m "$m" -f "$tmp/csv" --winogrande
test $rc -eq 0 && grep -q '^WinoGrande: ' "$tmp/out"
ok '--winogrande'
cp "$tmp/out" "$tmp/plain"
run "$ppl" -q -m "$m" -f "$tmp/csv" --winogrande --compat
test $rc -eq 0 && grep -q '^WinoGrande (compat): ' "$tmp/out"
ok '--compat'
printf '%s\n' '{"question": "Was it", "choices": ["so", "the", "of"], "labels": [1, 0, 1]}' \
    >"$tmp/mc"
run "$ppl" -q -m "$m" -f "$tmp/mc" --multiple-choice
test $rc -eq 0 && grep -q '^multiple choice: ' "$tmp/out" &&
    grep -q '^chance *66.6667%$' "$tmp/out"
ok '--multiple-choice, with two right answers'

head -c 100 "$tmp/six" >"$tmp/cut"
run "$ppl" -m "$m" -f "$tmp/cut" --hellaswag
test $rc -eq 1 -a ! -s "$tmp/out" && grep -q 'cut: line 1: a task of 6 lines has' "$tmp/err"
ok 'a file that was cut off is refused with the line'
run "$ppl" -m "$m" -f "$tmp/six" --winogrande
test $rc -eq 1 && grep -q 'six: line 1 is not number,sentence,' "$tmp/err"
ok 'so is one of another task'
run "$ppl" -m "$m" -f "$tmp/six" --multiple-choice
test $rc -eq 1 && grep -q 'neither JSON lines nor a file of choices' "$tmp/err"
ok 'and a text'
run "$ppl" -m "$m" -f "$m" --hellaswag
test $rc -eq 1 && grep -q 'is a GGUF file' "$tmp/err"
ok 'and a model'
run "$ppl" -m "$m" -f "$tmp/six" --hellaswag -c 8
test $rc -eq 1 && grep -q 'six: an answer has .* tokens, expected at most .*: use -c' "$tmp/err"
ok 'a context that is too short'
for args in '--hellaswag --winogrande' '--tasks 3' '--compat'; do
    run "$ppl" -m "$m" -f "$tmp/six" $args
    test $rc -eq 2 -a "$(wc -l <"$tmp/err")" -eq 1
    ok "wrong usage: $args"
done
done_testing
