#!/bin/sh
# SPDX-License-Identifier: MIT
# op-gen.sh SRCDIR - generates files from the table of operations and builders
#
# Writes SRCDIR/lib/gguf/op_num.h from the rows of lib/graph/op_list.h, and the
# part "op.h" of SRCDIR/lib/libgguf.map from the prototypes in lib/gguf/op*.h,
# if they differ from the present files. Both files are kept with the sources,
# so that a review sees additions to the interface. make runs this.
set -eu
lib=$1/lib
: "${AWK:=awk}"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

"$AWK" '
BEGIN {
    print "/* SPDX-License-Identifier: MIT */"
    print "/* op_num.h - the operations and their numbers"
    print " *"
    print " * Made by lib/graph/op-gen.sh from lib/graph/op_list.h: do not edit."
    print " */"
    print "#ifndef GGUF_OP_NUM_H\n#define GGUF_OP_NUM_H\n"
    print "/* tensor->op. Values never change once released. */"
    print "enum gguf_op {"
}
/^#define GG_OP_LIST/ { on = 1; next }
/^$/ { on = 0 }
on && /^ *\/\*/ { sub(/ *\\$/, ""); print }
on && match($0, /X\([A-Z0-9_]+,/) {
    print "    GGUF_OP_" substr($0, RSTART + 2, RLENGTH - 3) (n++ ? "," : " = 0,")
}
END { print "\n    GGUF_N_OPS\n};\n\n#endif"; exit !n }
' "$lib/graph/op_list.h" >"$tmp/op_num.h"

# Names that are declared: before "(" or in GGUF_BUILDER_n().
sed -n 's/^GGUF_BUILDER_[12](\(gguf_op_[a-z0-9_]*\)).*/\1/p
    s/^\(GGUF_API .*[ *]\)\{0,1\}\(gguf_op_[a-z0-9_]*\)(.*/\2/p' \
    "$lib"/gguf/op*.h | LC_ALL=C sort >"$tmp/names"
test -s "$tmp/names"
# They go into the last part "op.h" of the map, except those in an earlier
# version's part.
"$AWK" '
FNR == 1 { pass++ }
pass == 1 { name[++n] = $0; next }
pass == 2 && /^\t# op\.h$/ { part = FNR }
pass == 2 { line[FNR] = $1; next }
FNR == 1 { for (i = 1; i < part; i++) released[line[i]] = 1 }
/^\t# / || /^[^\t]/ { on = 0 }
!on
FNR == part {
    on = 1
    for (i = 1; i <= n; i++)
        if (!(name[i] ";" in released))
            print "\t" name[i] ";"
}' "$tmp/names" "$lib/libgguf.map" "$lib/libgguf.map" >"$tmp/libgguf.map"

update() # new, old
{
    cmp -s "$1" "$2" || { echo "  UPDATE   $2"; cp "$1" "$2"; }
}
update "$tmp/op_num.h" "$lib/gguf/op_num.h"
update "$tmp/libgguf.map" "$lib/libgguf.map"
