#!/bin/sh
# SPDX-License-Identifier: MIT
# windows-zip.sh - a zip with the tools for Windows, made by `make dist-windows'
#
#   packaging/windows-zip.sh FOLDER
#
# In a build folder for Windows. FOLDER names the zip and its folder, with the
# programs, the pages about them as text, and the licences. Nothing else is
# needed to run them: a program that needs a library other than Windows' own is
# an error. Environment: srcdir, STRIP, OBJDUMP, and LICENCES, the folder with
# those of the libraries inside (static-deps.sh makes one). With
# SOURCE_DATE_EPOCH set, zips of equal programs have equal bytes.
set -eu
: "${srcdir:=.}" "${STRIP:=strip}" "${OBJDUMP:=objdump}"
folder=$1
fail() { echo "windows-zip.sh: $*" >&2; exit 1; }
command -v zip >/dev/null || fail 'zip is missing'
test -d "${LICENCES-}" ||
    fail 'LICENCES names no folder: that of static-deps.sh is PREFIX/licences'
rm -rf "$folder" "$folder.zip"
mkdir -p "$folder/man"

for program in ./gguf-*.exe; do
    test -f "$program" || fail 'no programs for Windows here'
    out=$folder/${program#./}
    cp "$program" "$out"
    $STRIP "$out"
    # Windows' own: the C library, the system, and what these import.
    $OBJDUMP -p "$out" | sed -n 's/^\tDLL Name: //p' | tr A-Z a-z |
        grep -vxE '(kernel32|advapi32|ntdll|user32|bcrypt|msvcrt|ucrtbase)\.dll|api-ms-win-.*' \
            >"$folder/needs" || true
    test ! -s "$folder/needs" ||
        fail "$program needs $(cat "$folder/needs"): configure with --disable-shared"
done
rm -f "$folder/needs"

cp "$srcdir/README" "$folder/README.txt"
cp "$srcdir/ChangeLog" "$folder/ChangeLog.txt"
cp "$srcdir/COPYING" "$folder/COPYING.txt"
mkdir "$folder/licences"
for licence in "$LICENCES"/*; do
    cp "$licence" "$folder/licences/${licence##*/}.txt"
done
if command -v groff >/dev/null; then
    for page in "$srcdir"/man/*.[157]; do
        name=${page##*/}
        # Hyphens that can be copied into a command.
        LC_ALL=C.UTF-8 groff -t -man -Tutf8 -P-cbou "$page" |
            sed 's/‐/-/g; s/−/-/g' >"$folder/man/${name%.*}.txt"
    done
else
    rmdir "$folder/man"
fi

# A date for all files, in the zone of UTC, since a zip has local times.
TZ=UTC0
export TZ
find "$folder" -exec touch -d "@${SOURCE_DATE_EPOCH:-$(date +%s)}" {} +
find "$folder" -type f | LC_ALL=C sort | zip -q -X -9 "$folder.zip" -@
rm -rf "$folder"
echo "$folder.zip"
