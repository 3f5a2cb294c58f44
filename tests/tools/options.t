#!/bin/sh
# SPDX-License-Identifier: MIT
# Command lines: llama.cpp's names of options, names that are refused with
# advice, options that exclude each other. check-opt.c tests how words are
# parsed.
set -u
. "${srcdir:-.}/tests/tools/lib.sh"
tiny=$srcdir/share/tiny-llama/tiny-llama-f16.gguf
m=$tmp/m.gguf
"$mkmodel" "$m" || exit 99
head -c 3000 "$srcdir/share/tiny-llama/persuasion.txt" >"$tmp/text"

# Lines "tool|arguments|message": a usage error whose message begins like this.
# M, T and O stand for a model, a text and an output.
refused()
{
    while IFS='|' read -r tool args message; do
        set --
        for a in $args; do
            case $a in
            M) a=$m ;;
            T) a=$tmp/text ;;
            O) a=$tmp/o.gguf ;;
            esac
            set -- "$@" "$a"
        done
        run "$bin/gguf-$tool" "$@"
        test $rc -eq 2 -a ! -s "$tmp/out" -a ! -e "$tmp/o.gguf" &&
            test "$(wc -l <"$tmp/err")" -eq 1 &&
            grep -qF -e "gguf-$tool: $message" "$tmp/err"
        ok "gguf-$tool $args: $message"
    done
}

refused <<'END'
convert|x --outfile O|unsupported option '--outfile': --output OUT names the file
convert|x -o O --outtype q8_0|unsupported option '--outtype': --output OUT=TYPE sets the type
convert|x --outtpye q8_0|unknown option '--outtpye'
convert|x y.gguf|'y.gguf' is one argument too many: --output OUT names the output
convert|M -o O|expected a folder, found the GGUF file '
convert|x -o O --verify-chunks 2|'--verify-chunks' needs --verify
convert|x -o O --verify T --verify-chunks 0|--verify-chunks: '0' is not
convert|x -o O --verify T --verify-factor 2|--verify-factor: found one output, expected several
convert|x -o O --verify T --base M|'--verify' and '--base' exclude each other
convert|M --to-safetensors O --verify T|'--to-safetensors' and '--verify' exclude each other
ppl|-m M -bf T|unsupported option '-bf': --file
ppl|-hf x -f T|unsupported option '-hf': models are not downloaded
ppl|-m M -f T -ngl 99|-ngl: '99' is not '0': no layer is offloaded; --backend NAME
ppl|--list-devices|unsupported option '--list-devices': the CPU computes; --backend
ppl|-m M -f T --temp 0|unsupported option '--temp': no text is generated
ppl|-m M -f T -C ff|unsupported option '-C': --cpus LIST
ppl|-m M -f T -n 32|unsupported option '-n': no text is generated; --file TEXT
ppl|-m M -f T -md x|unsupported option '-md': draft models
ppl|-m M -f T --load-mode mlock|unsupported option '--load-mode': weights are mapped; --no-mmap copies them, --mlock
ppl|-m M -f T -lzm on|unsupported option '-lzm': weights are read when
ppl|-m M -f T --n-cpu-ffn 3|unsupported option '--n-cpu-ffn': the CPU computes
ppl|-m M -f T --log-jsonl|unsupported option '--log-jsonl': messages go to
imatrix|-m M -f T -o O --load-mode none|unsupported option '--load-mode': weights are used where
ppl|-m M -f T -v|unsupported option '-v': messages go to standard error
ppl|-m M -f T --log-disable|unsupported option '--log-disable': messages
ppl|-m M -f T --chunk 3|unsupported option '--chunk': --chunks A..B
ppl|-m M -f T --tokenize|unsupported option '--tokenize': gguf-tokenize does that
ppl|-m M --base B -f T --layers|unsupported option '--layers': gguf-compare does that
ppl|-m M --tokens T --save-logits O|unsupported option '--tokens': gguf-eval does that
compare|-m M --base B -f T --tokens x|unsupported option '--tokens': gguf-eval does that
eval|-m M --base B|unsupported option '--base': gguf-ppl and gguf-compare do that
tokenize|-m M -f T -c 64|unknown option '-c'
imatrix|-m M -f T -o O -ot a=b|unsupported option '-ot': weights are used
imatrix|-m M -f T -o O -s 42|--file collects data: '42' cannot be read
imatrix|-m M -f T -o O -ctk q8_0|unsupported option '-ctk': keys and values
imatrix|-m M -f T -o O --lora x|unsupported option '--lora': merge it into the model first, with gguf-quantize
imatrix|-m M -f T -o O --rope-scale 2|unsupported option '--rope-scale': the file
imatrix|-m M -f T -o O --temp 1|unsupported option '--temp': no text is generated
imatrix|-m M -f T -o O -ngl 4|-ngl: '4' is not '0': no layer
ppl|-m M -f T -tx 2|unknown option '-tx'
ppl|-m M -f T -c 128 -c 256|option '-c' is given twice
ppl|-m M -f T -m M|2 models need --base: the model to compare them with
ppl|-m M -f T --base M --base M|option '--base' is given twice
ppl|-m M -f T -t 1 --threads 2|'-t' and '--threads' say the same thing
ppl|-model M -f T|unknown option '-model'; did you mean '--model'?
ppl|-m M|--file, --base, --kl-divergence-base or --merge-parts is missing
ppl|-m M --base M|--file is missing; only a file of logits contains its text
ppl|-m M -f T --base M --save-base X|'--base' and '--save-base' exclude each other
ppl|-m M -f T --kl-divergence|'--kl-divergence' needs --kl-divergence-base
ppl|M|--model or --merge-parts is missing before '
ppl|-m M some.txt|--file, --base, --kl-divergence-base or --merge-parts is missing before 'some.txt'
ppl|-f T|--model or --merge-parts is missing
ppl|--merge-parts|--merge-parts: PART is missing
ppl|--merge-parts -m M x|'--merge-parts' and '-m' exclude each other
ppl|-m M -f T --mpi --save-base X|'--mpi' and '--save-base' exclude each other
ppl|-m M -f T --mpi --layer-major|'--mpi' and '--layer-major' exclude each other
ppl|-m M -f T --mpi --kl-divergence-base X|'--mpi' and '--kl-divergence-base' without --kl-divergence exclude each other
ppl|--merge-parts --per-token X x|'--merge-parts' and '--per-token' exclude each other
ppl|-m M -f T T|'
ppl|-m M -f T -ctv q4_k|-ctv: 'q4_k' is not 'f32', 'f16'
ppl|-m M -f T --lora-scaled x|--lora-scaled: 'x' is not FILE:SCALE
ppl|-m M -f T --lora x=1e10|--lora: 'x=1e10': the scale is not from -1e9 to 1e9
ppl|-m M -f T --lora x=nan|--lora: 'x=nan': the scale is not
ppl|-m M -f T --control-vector-scaled x|--control-vector-scaled: 'x' is not FILE:SCALE
ppl|-m M -f T --control-vector x --control-vector-layer-range 2|--control-vector-layer-range: '2' is not FIRST,LAST
ppl|-m M -f T --control-vector x --control-vector-layer-range 3,2|--control-vector-layer-range: '3,2' is not FIRST,LAST
ppl|-m M -f T --control-vector-layer-range 1,2|'--control-vector-layer-range' needs
ppl|-m M -f T --lora =2|--lora: '=2' names no file
quantize|--lora A --compat M O Q8_0|'--lora' and '--compat' exclude each other
compare|-m M -f T --base M --tolerance 1|'--tolerance' needs --compare-backends
eval|-m M -j --print-plan|'--print-plan' and '-j' exclude each other
eval|-m M --tokens T -f T --save-logits X|'--tokens' and '-f' exclude each other
ppl|-m M --base X --field F|'--field' needs --file
ppl|-m M --base X --skip-short|'--skip-short' needs --file
ppl|-m M -f T --cpus 0 --numa|'--cpus' and '--numa' exclude each other
split|--merge --split M O|'--merge' and '--split' exclude each other
split|--merge --split-max-size 1G M O|'--merge' and '--split-max-size' exclude
split|M|OUT is missing
split|--merge x-00001-of-00003.gguf x-00002-of-00003.gguf x-00003-of-00003.gguf|'x-00002-of-00003.gguf' is one argument too many: one shard stands for all, and OUT comes after it
split|M O M|'
split|--split-max-size 1G --split-max-size=2G M O|option '--split-max-size' is given twice
split|--split-max-size 0 M O|--split-max-size: 0 bytes are too few
split|-merge M O|unknown option '-merge'; did you mean '--merge'?
info||FILE is missing
info|--json --markdown M|'--json' and '--markdown' exclude each other
info|--key a --diff M M|'--key' and '--diff' exclude each other
info|--values a --summary M|'--values' and '--summary' exclude each other
info|--sort=age M|--sort: 'age' is not 'name', 'size', 'type', 'elements' or 'offset'
info|--arrays=-1 M|--arrays: '-1' is not a whole number between 0 and
info|--s M|option '--s' is ambiguous: --summary, --stats, --sort, --strings
info|--tensors=a --stats=b M|'--tensors' and '--stats' say the same thing
info|--key a --key b M|option '--key' is given twice
edit||FILE is missing
edit|M|no change is given: add KEY VALUE, or an option
edit|M --special-token eos|--special-token: 'eos' is not NAME=TEXT, or two words
edit|--special-token eos M|FILE is missing
edit|--special-token oes=x M|--special-token: 'oes' is not the name of a special token; did you mean 'eos'?
edit|--remove-metdata x M|unknown option '--remove-metdata'; did you mean '--remove-metadata'?
info|-c 8kk --memory M|-c: '8kk' is not a whole number between 1 and
info|-c 9999999k --memory M|-c: '9999999k' is not a whole number between 1 and
info|--cache-type f61 --memory M|--cache-type: 'f61' is not
info|--diff --types M M|'--diff' and '--types' exclude
info|--table --tensors M|'--table' and '--tensors' exclude
info|--no-tensors M|unsupported option '--no-tensors': --summary and --metadata
info|--data-offset M|unsupported option '--data-offset': --json prints
info|--sha256 M|unsupported option '--sha256': --hash=sha256
info|--uuid M|unsupported option '--uuid': --hash has
edit|--general-name x M O|unsupported option '--general-name': --set general.name
edit|--special-token-by-id bos 1 M O|unsupported option '--special-token-by-id': --set
edit|--chat-template-file x M O|unsupported option '--chat-template-file': --set-file
convert|--vocab-only x|unsupported option '--vocab-only': a vocabulary
convert|--base-model-id a/b x|unsupported option '--base-model-id': --base hf://ID
info|--json-array M|unsupported option '--json-array': --json prints all
info|--hash=xhx64 M|--hash: 'xhx64' is not 'xxh64', 'xxh3-128' or 'sha256'; did you mean 'xxh64'?
info|--hash=md5 M|--hash: 'md5' is not 'xxh64', 'xxh3-128' or 'sha256' (try
quantize|M O Q4KM|'Q4KM' is not a type that --list-types lists; did you mean 'Q4_K_M'?
quantize|-o x=Q4-K-X M|--output: 'x=Q4-K-X' is not OUT=TYPE; did you mean 'Q4_K_
quantize|--tensor-type a=Q8-O M O Q8_0|--tensor-type: 'Q8-O' is not a type to quantize to; did you mean 'Q8_0'?
quantize|--print-recipe IQ4SX|--print-recipe: unknown recipe 'IQ4SX'; did you mean 'IQ4_XS'?
quantize|--attn-v-type Q6_K M O Q4_0|unsupported option '--attn-v-type': --tensor-type PATTERN=TYPE
quantize|--ffn-down-type Q6_K M O Q4_0|unsupported option '--ffn-down-type': --tensor-type
quantize|--ffn-gate-inp-type Q6_K M O Q4_0|unsupported option '--ffn-gate-inp-type': --tensor-type
quantize|--repack M O Q4_0|unsupported option '--repack': --repack-to interleaved repacks a file
quantize|--custom-q a=Q6_K M O Q4_0|unsupported option '--custom-q': --tensor-type
quantize|--nthread 4 M O Q4_0|unsupported option '--nthread': --threads
quantize|--max-buffer-size 1 M O Q4_0|unsupported option '--max-buffer-size': --max-memory
quantize|--hide-imatrix M O Q4_0|unsupported option '--hide-imatrix': only the name of the file
quantize|--limit dim=5 M O Q4_0|--limit: no limit is called 'dim'; there are kv, tensors, key-size, name-size, str-size, array-items, depth, dims, header; did you mean 'dims'?
edit|--set a=1|FILE is missing
edit|M M|no change is given
edit|--set a=1 -o O M M|--output: '
edit|--set =1 M|--set: '=1' is not KEY=[TYPE:]VALUE
edit|--rename a M|--rename: 'a' is not OLD=NEW
edit|--in-place -o O --set a=1 M|'--in-place' and '-o' exclude each other
edit|--recover --set a=1 M|'--recover' and '--set' exclude each other
edit|--to-endian middle M|--to-endian: 'middle' is not 'big' or 'little'
edit|-o O -o O --set a=1 M|option '-o' is given twice
edit|-output O --set a=1 M|unknown option '-output'; did you mean '--output'?
imatrix||IN is missing
imatrix|--include a --exclude b M|'--include' and '--exclude' exclude each other
imatrix|--output-format dat M|'--output-format' needs --output
imatrix|-o O --output-format xml M|--output-format: 'xml' is not 'gguf' or 'dat'
imatrix|-ofreq 5 M|'-ofreq' needs --file
imatrix|-f T -o O|'-f' needs --model
imatrix|-f T -m M|'-f' needs --output, --save-part, --show or --json
imatrix|-f T -m M -o O IN|--file collects data: 'IN' cannot be read in the same run
imatrix|-f T -m M -o O --chunks 5..5|--chunks: '5..5' is not a number of chunks or a range A..B
imatrix|-f T -m M -o O --chunks 0|--chunks: '0' is not a number of chunks or a range A..B
imatrix|-f T -m M -o O --chunks 2.. --chunk 3|--from-chunk: --chunks 2.. already has a first chunk
imatrix|-f T --merge-parts -m M -o O|'-f' and '--merge-parts' exclude each other
imatrix|--resume -o O IN|'--resume' needs --file
imatrix|-f T -m M -o O --mpi --resume|'--mpi' and '--resume' exclude each other
imatrix|-f - -m M -o O --mpi|--mpi: only one rank has standard input, and every rank reads the text: give a file
imatrix|--mpi -m M x|'--mpi' needs --file
imatrix|-f T -m M -j --save-every 2|'--save-every' needs --output or --save-part
imatrix|--in-file M|unsupported option '--in-file': give input files as operands
imatrix|-o O --output-file O M|'-o' and '--output-file' say the same thing
quantize||IN is missing
quantize|M|OUT and TYPE are missing
quantize|M Q4KM|'Q4KM' is not a type that --list-types lists; did you mean 'Q4_K_M'?
quantize|M x.gguf|TYPE is missing; --list-types lists them
quantize|M O Q9_9|'Q9_9' is not a type
quantize|M O Q8_0 4 x|'x' is one argument too many
quantize|--target-size 1G --target-bpw 4 M O|'--target-size' and '--target-bpw' exclude each other
quantize|--target-types Q4_K M O Q8_0|'--target-types' needs --target-size, --target-bpw or --output OUT=@SIZE
quantize|--keep-split --split-max-size 1G M O Q8_0|'--keep-split' and '--split-max-size' exclude
quantize|--include-weights a M O Q8_0|'--include-weights' needs --imatrix
quantize|--imatrix M --include-weights a --exclude-weights b M O Q8_0|'--include-weights' and '--exclude-weights' exclude
quantize|--on-nonfinite drop M O Q8_0|--on-nonfinite: 'drop' is not 'error', 'zero' or 'keep'
quantize|--recipe a -r b M O|'--recipe' and '-r' say the same thing
quantize|--report=a --report=b M O Q8_0|option '--report' is given twice
quantize|--tensor-type x M O Q8_0|--tensor-type: 'x' is not PATTERN=TYPE
quantize|-o x M|--output: 'x' is not OUT=TYPE
quantize|-output x=Q8_0 M|unknown option '-output'; did you mean '--output'?
END

# Options that gguf-ppl had when it was the only tool are still its own, or the
# message names the tool that has them.
for name in -m --model --base --kl-divergence-base --save-all-logits \
    --kl-divergence -f --file --field --skip-short --tokens --chunks \
    --ppl-stride --hf --max-text --lora --lora-scaled --control-vector \
    --control-vector-scaled --control-vector-layer-range -c --ctx-size -b \
    --batch-size -ub --ubatch-size -t --threads -tb --threads-batch \
    --precision --base-precision --repack --no-fuse --cpus --numa --compat \
    --cache-type -ctk --cache-type-k -ctv --cache-type-v --unified \
    --kv-unified -kvu --full-windows --swa-full --rope-freq-base --rope-scale \
    --rope-freq-scale --rope-scaling --yarn-orig-ctx --yarn-ext-factor \
    --yarn-attn-factor --yarn-beta-fast --yarn-beta-slow --window --pre \
    --override-kv --force --prefetch --no-mmap --mlock -ot --override-tensor \
    --layer-major --max-memory --no-check --no-digest --check-activations \
    --backend --base-backend --hellaswag --winogrande --multiple-choice \
    --tasks --hellaswag-tasks --winogrande-tasks --multiple-choice-tasks \
    --layers --bisect --time-budget --compare-backends --tolerance \
    --print-graph --print-assignments --print-plan --tokenize --detokenize \
    --parse-special --no-bos --profile --per-token --plot --html --save-part \
    --merge-parts --mpi --save-base --base-form --save-logits \
    --save-embeddings --pooling --normalize -j --json -q --quiet; do
    has() { "$bin/$1" --help=all | grep -q -e "^ .*$name[], =[]" -e "^ .*$name\$"; }
    run "$bin/gguf-ppl" "$name"
    tool=$(sed -n "s/.*unsupported option '$name': \(gguf-[a-z]*\) does that\$/\1/p" \
        "$tmp/err")
    if test "$name" = --tokenize; then # which is what gguf-tokenize does
        test "$tool" = gguf-tokenize
    else
        has "${tool:-gguf-ppl}"
    fi || echo "$name"
done >"$tmp/lost"
run cat "$tmp/lost"
test ! -s "$tmp/out"
ok 'every option that gguf-ppl had is in one of the tools'

printf 'a=Q8_0\n\0b=Q8_0\n' >"$tmp/types"
run "$bin/gguf-quantize" --tensor-type-file "$tmp/types" "$m" "$tmp/o" Q4_0
test $rc -eq 2 -a ! -e "$tmp/o" && grep -q 'is not a text' "$tmp/err"
ok 'gguf-quantize --tensor-type-file: a NUL ends nothing silently'

if test -f "$tiny"; then
    # devices are not outputs, with --force or without
    for args in 'imatrix -o' 'imatrix --save-part' 'imatrix --force -o' \
        'ppl -c128 --save-part' 'ppl --force -c128 --save-part'; do
        set -- $args
        tool=$1
        shift
        run "$bin/gguf-$tool" -m "$tiny" -f "$tmp/text" "$@" /dev/full
        test $rc -eq 1 -a -c /dev/full &&
            grep -q '^gguf-.*: /dev/full: is not a regular file' "$tmp/err"
        ok "gguf-$args /dev/full"
    done

    digits()
    {
        run "$bin/gguf-ppl" -j -m "$tiny" -f "$tmp/text" -c=128 "$@"
        test $rc -eq 0 && grep -e '"ppl"' -e "$key" "$tmp/out" >"$tmp/digits"
    }
    key='"threads"' digits -tb 2 && grep -q '"threads": 2' "$tmp/out"
    ok 'gguf-ppl -tb 2: two threads'
    key='"ubatch_size"' digits -ub=64 && grep -q '"ubatch_size": 64' "$tmp/out"
    ok 'gguf-ppl -ub=64'
    key='"cache_type_[kv]"'
    digits --cache-type F16 && cp "$tmp/digits" "$tmp/both" &&
        digits -ctk f16 -ctv f16 && cmp -s "$tmp/digits" "$tmp/both" &&
        digits --cache-type q4_0 -ctv f16 --cache-type-k f16 &&
        cmp -s "$tmp/digits" "$tmp/both"
    ok 'gguf-ppl --cache-type: what -ctk and -ctv do not say'
    digits -ctk q8_0 && ! cmp -s "$tmp/digits" "$tmp/both" &&
        grep -q '"cache_type_k": "Q8_0"' "$tmp/digits" &&
        grep -q '"cache_type_v": "F32"' "$tmp/digits"
    ok 'gguf-ppl -ctk: of keys alone'
    digits -ctv iq4_nl && grep -q '"cache_type_k": "F32"' "$tmp/digits" &&
        grep -q '"cache_type_v": "IQ4_NL"' "$tmp/digits"
    ok 'gguf-ppl -ctv: of values alone'

    # options of llama.cpp that ask for the default change nothing
    key='"settings"'
    digits && cp "$tmp/digits" "$tmp/plain" &&
        digits -ngl 0 -fa on -fit off -s 42 --no-warmup --mmap -nr &&
        cmp -s "$tmp/digits" "$tmp/plain"
    ok 'gguf-ppl -ngl 0 and others: accepted'

    # four chunks at once, with a cache each or one for all
    key='"sequences"'
    digits && grep -q '"sequences": [2-9]' "$tmp/out" &&
        cp "$tmp/digits" "$tmp/apart" && digits --unified &&
        grep -q '"unified": true' "$tmp/out" &&
        cmp -s "$tmp/digits" "$tmp/apart" && digits -kvu -ub 64 -b 512 &&
        grep -q '"unified": true' "$tmp/out" && digits --kv-unified &&
        cmp -s "$tmp/digits" "$tmp/apart"
    ok 'gguf-ppl --unified: the same digits'
    digits --full-windows && grep -q '"full_windows": true' "$tmp/out" &&
        cmp -s "$tmp/digits" "$tmp/apart" && digits --swa-full -kvu &&
        grep -q '"full_windows": true' "$tmp/out" &&
        cmp -s "$tmp/digits" "$tmp/apart"
    ok 'gguf-ppl --full-windows: the same digits'
    run "$bin/gguf-ppl" -m "$tiny" -f "$tmp/text" -c 128 -kvu --swa-full -ctk f16
    grep -qx 'cache   keys in F16, values in F32, unified, windows in full' \
        "$tmp/out"
    ok 'gguf-ppl: and says so'
fi

# A model whose layers have a window of five tokens. Sessions keep the window,
# a micro-batch and some; or all tokens.
w=$tmp/windows.gguf
"$builddir/tests/tools/mkskeleton" "$w" gemma3 &&
    "$bin/gguf-edit" -q --force --set gemma3.attention.sliding_window=5 "$w" ||
    exit 99
i=0
while test $i -lt 200; do
    echo $(((i * 37 + 11) % 128))
    i=$((i + 1))
done >"$tmp/ids"
rows() # OUT OPTION...
{
    out=$tmp/$1
    shift
    run "$bin/gguf-eval" -m "$w" --tokens "$tmp/ids" --save-logits "$out" \
        -c 200 -j "$@"
    test $rc -eq 0
}
rows few -ub 8 && grep -q '"full_windows": false' "$tmp/out" &&
    rows all --full-windows -ub 8 && grep -q '"full_windows": true' "$tmp/out" &&
    cmp -s "$tmp/few" "$tmp/all" &&
    rows swa --swa-full -ub 200 && cmp -s "$tmp/few" "$tmp/swa"
ok 'gguf-eval --full-windows of a model with windows: the same digits'
rows cut -ub 8 --rope-freq-base 1e4 && ! cmp -s "$tmp/few" "$tmp/cut"
ok 'gguf-eval: which others are not'
cells() # OPTION...: of the keys of the first layer, which sees a window
{
    run "$bin/gguf-eval" -q -m "$w" -c 200 -ub 8 --print-graph "$@"
    sed -n "s/.*'cache_k\.0' F32 \[[0-9]*, \([0-9]*\)\]/\1/p" "$tmp/out"
}
few=$(cells)
test "$few" -gt 5 -a "$few" -lt 200 -a "$(cells --full-windows)" -eq 200
ok 'gguf-eval --full-windows: room for all tokens, not for a window of them'

done_testing
