#!/bin/sh
# SPDX-License-Identifier: MIT
# op-gen.sh makes numbers and the map from the table of operations and their
# prototypes. The sources have its output. A new row and prototype give a
# number, and a line in the map's node of the version that is not released.
set -u
. "${srcdir:-.}/tests/tap.sh"
gen=$srcdir/lib/graph/op-gen.sh
mkdir -p "$tmp/lib/graph" "$tmp/lib/gguf"
cp "$srcdir/lib/graph/op_list.h" "$tmp/lib/graph"
cp "$srcdir"/lib/gguf/op*.h "$tmp/lib/gguf"
cp "$srcdir/lib/libgguf.map" "$tmp/lib"
chmod -R u+w "$tmp/lib"
map=$tmp/lib/libgguf.map numbers=$tmp/lib/gguf/op_num.h list=$tmp/lib/graph/op_list.h
run() { sh "$gen" "$tmp" >"$tmp/log" 2>&1; }

run && test ! -s "$tmp/log"
verdict "numbers and map are what the table and the headers say" $? "$tmp/log"

# a row after the last one, and a prototype of it and of one without a row
sed '/^#define GG_OP_LIST/,/^$/{
    /[^\\]$/s/$/ \\\
    X(CUBE, cube, 1, 0, 1, WORK, one, unary, out)/
}' "$list" >"$tmp/new" && mv "$tmp/new" "$list"
cat >>"$tmp/lib/gguf/op_elem.h" <<'EOF'
GGUF_BUILDER_1(gguf_op_cube); /* x^3 */
GGUF_API struct gguf_tensor *
gguf_op_cube_of_sum(struct gguf_ctx *ctx, struct gguf_tensor *a);
GGUF_API struct gguf_tensor *gguf_op_a(struct gguf_ctx *ctx);
EOF
cp "$map" "$tmp/map"
run
diff "$srcdir/lib/gguf/op_num.h" "$numbers" | sed -n 's/^[<>] *//p' >"$tmp/got"
test "$(cat "$tmp/got")" = 'GGUF_OP_CUBE,'
verdict "a row gives a number" $? "$tmp/got"
sed -n '/^enum/,/GGUF_N_OPS/p' "$numbers" | grep -E 'GGUF_(OP_CUSTOM|OP_CUBE|N_OPS)' |
    tr -d ' \n,' >"$tmp/got"
test "$(cat "$tmp/got")" = GGUF_OP_CUSTOMGGUF_OP_CUBEGGUF_N_OPS
verdict "the last one" $? "$tmp/got"
diff "$tmp/map" "$map" | sed -n 's/^\([<>]\)[[:space:]]*/\1/p' >"$tmp/got"
printf '>%s;\n' gguf_op_a gguf_op_cube gguf_op_cube_of_sum >"$tmp/want"
diff "$tmp/want" "$tmp/got" >"$tmp/log"
verdict "each prototype gives a line in the map, wherever it breaks" $? "$tmp/log"

# as if the operations of the sources were released
sed 's/^};$/};\
LIBGGUF_9 {\
global:\
	# op.h\
	gguf_op_gone;\
	# other.h\
	gguf_other;\
} LIBGGUF_0.1;/' "$tmp/map" >"$map"
run
sed -n '/^LIBGGUF_9/,$p' "$map" | sed -n 's/^\t\([^#].*\)/>\1/p' >"$tmp/got"
echo '>gguf_other;' >>"$tmp/want"
sed '/^LIBGGUF_9/,$d' "$map" | diff "$tmp/map" - >"$tmp/log" &&
    diff "$tmp/want" "$tmp/got" >"$tmp/log"
verdict "what is released keeps its version" $? "$tmp/log"

# an error leaves all files unchanged
cp "$numbers" "$tmp/numbers"
echo >"$list"
run
test $? != 0 && cmp -s "$numbers" "$tmp/numbers"
verdict "a table without rows is refused" $? "$tmp/log"
done_testing
