#!/bin/sh
# SPDX-License-Identifier: MIT
# Includes go one way: a file of lib/ includes its own folder, public headers,
# and layers before its own in this list.
set -u
: "${srcdir:=.}"
layers='base dtype kern linalg fit file data imatrix recipe quant target graph alloc backend sched cpu blas vocab model run eval calibrate convert'
n=0
status=0
allowed=gguf
for layer in $layers; do
    allowed="$allowed $layer"
    test -d "$srcdir/lib/$layer" || continue
    n=$((n + 1))
    bad=$(find "$srcdir/lib/$layer" -name '*.[ch]' -exec grep -Hn '^ *# *include *"' {} + |
        awk -v allowed="$allowed" '
            BEGIN { k = split(allowed, a, " "); for (i = 1; i <= k; i++) good[a[i]] = 1
                    good["config.h"] = 1 }
            { p = $0; sub(/^[^"]*"/, "", p); sub(/".*/, "", p)
              d = p; if (d != "config.h") sub(/\/.*/, "", d)
              if (!(d in good)) print }')
    if test -z "$bad"; then
        echo "ok $n - $layer includes nothing above it"
    else
        echo "not ok $n - $layer includes nothing above it"
        echo "$bad" | sed 's/^/# /'
        status=1
    fi
done
# So do folders within a layer, in this order. Files in the layer's own folder
# have headers for all of them.
inner() # layer folder...
{
    layer=$1 allowed=
    shift
    for sub in "$@"; do
        allowed="$allowed $sub"
        n=$((n + 1))
        bad=$(grep -Hn "^ *# *include *\"$layer/" "$srcdir/lib/$layer/$sub"/*.[ch] |
            awk -v allowed="$allowed" -v room="$layer/" '
                BEGIN { k = split(allowed, a, " "); for (i = 1; i <= k; i++) good[a[i]] = 1 }
                { p = $0; sub(/^[^"]*"/, "", p); p = substr(p, length(room) + 1)
                  if (sub(/\/.*/, "", p) && !(p in good)) print }')
        if test -z "$bad"; then
            echo "ok $n - $layer/$sub includes nothing above it"
        else
            echo "not ok $n - $layer/$sub includes nothing above it"
            echo "$bad" | sed 's/^/# /'
            status=1
        fi
    done
}
inner base os
inner quant job resume run
inner convert card folder vocab describe back family projector image
# A folder that is in no list is an unknown layer.
n=$((n + 1))
extra=
for d in "$srcdir"/lib/*/; do
    b=$(basename "$d")
    case " gguf $layers " in *" $b "*) ;; *) extra="$extra $b" ;; esac
done
if test -z "$extra"; then echo "ok $n - every folder is a layer"
else echo "not ok $n - every folder is a layer"; echo "#$extra"; status=1; fi
echo "1..$n"
exit $status
