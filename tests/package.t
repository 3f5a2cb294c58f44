#!/bin/sh
# SPDX-License-Identifier: MIT
# Files that make install installs and make uninstall removes; facts about the
# release in the .pc file and the manual pages.
set -u
. "${srcdir:-.}/tests/tap.sh"
unset MAKEFLAGS MFLAGS MAKELEVEL
: "${MAKE:=make}"
version=$(sed -n 's/^AC_INIT(\[libgguf\], \[\([0-9.]*\)\].*/\1/p' "$srcdir/configure.ac")

# ---- the date and the version of every page, those made of headers too
pages=$(ls "$srcdir"/man/*.[1-9] "$srcdir"/man/*.3in "$builddir"/man/*.[1-9] 2>/dev/null)
for p in $pages; do
    sed -n "s|^\.TH [^ ]* [1-9] |${p##*/} |p" "$p"
done >"$tmp/th"
awk '{ print $2, $3, $4 }' "$tmp/th" | sort -u >"$tmp/dates"
test "$(wc -l <"$tmp/dates")" -eq 1 &&
    grep -q "^\"2[0-9]*-[0-9][0-9]-[0-9][0-9]\" \"libgguf $version\"$" "$tmp/dates" &&
    test "$(wc -l <"$tmp/th")" -ge 11
verdict 'manual pages have one date, and the version of configure.ac' $? "$tmp/dates"

# ---- packages
# Names of the libraries' packages, by the tables of bootstrap: for each module
# of pkg-config a line with the packages under apt, dnf, zypper, pacman, apk,
# brew.
"${AWK-awk}" '$2 ~ /^has_(lib_|curl)/ {
    module = $2 == "has_curl" ? "libcurl" : substr($2, 9)
    sub(/^[^ ]+ +[^ ]+ +/, "")
    gsub(/\|/, " ")
    print module, $0
}' "$srcdir/bootstrap" >"$tmp/modules"
(
    cd "$srcdir" || exit 99
    grep -q "^libgguf ($version)" debian/changelog ||
        echo 'debian/changelog: another version'
    grep -q "^ (symver)LIBGGUF_[0-9.]* $version$" debian/libgguf0.symbols ||
        echo 'debian/libgguf0.symbols: another version'
    grep -q "^Version: *$version$" packaging/libgguf.spec ||
        echo 'packaging/libgguf.spec: another version'
    grep -q "/v$version/libgguf-$version.tar.xz\"$" packaging/libgguf.rb ||
        echo 'packaging/libgguf.rb: another version'
    for f in APKBUILD PKGBUILD; do
        grep -q "^pkgver=$version$" packaging/$f ||
            echo "packaging/$f: another version"
    done
    grep -q "\"version\": \"$version\"" packaging/libgguf.json &&
        grep -q "/v$version/libgguf-$version-windows-x86_64.zip\"" \
            packaging/libgguf.json ||
        echo 'packaging/libgguf.json: another version'
    # Modules that configure asks pkg-config for are in bootstrap's tables.
    sed -n 's/.*PKG_CHECK_MODULES(\[[A-Z0-9]*\], \[\([a-z0-9-]*\).*/\1/p
        s/.*GGUF_UNPACK_ONE(.*, \[\([a-z0-9-]*\) .*/\1/p' \
        configure.ac m4/gguf-unpack.m4 m4/gguf-curl.m4 | while read -r module; do
        grep -q "^$module " "$tmp/modules" || echo "bootstrap: no $module"
    done
    # The packages of those modules are in every list.
    while read -r module apt _ _ pacman apk brew _; do
        grep -q "^ *$apt\( (.*)\)\{0,1\},\{0,1\}$" debian/control ||
            echo "debian/control: no $apt"
        grep -q "pkgconfig($module)" packaging/libgguf.spec ||
            echo "packaging/libgguf.spec: no $module"
        grep -q "^\(make\)\{0,1\}depends=(.*\<$pacman\>" packaging/PKGBUILD ||
            echo "packaging/PKGBUILD: no $pacman"
        grep -q "^makedepends=.*\<$apk\>" packaging/APKBUILD ||
            echo "packaging/APKBUILD: no $apk"
        grep -q "^  [a-z_]* \"$brew\"$" packaging/libgguf.rb ||
            echo "packaging/libgguf.rb: no $brew"
    done <"$tmp/modules"
    # Windows' package lists the programs.
    sed -n 's/^bin_PROGRAMS += //p' tools/Makefile.inc | sort >"$tmp/programs"
    sed -n 's/^ *"\(gguf-[a-z]*\)\.exe",\{0,1\}$/\1/p' packaging/libgguf.json |
        sort | diff "$tmp/programs" - | sed 's|^[<>]|packaging/libgguf.json:|'
    sed -n 's/^LIBGGUF_\([0-9.]*\) {.*/\1/p' lib/libgguf.map |
        while read -r node; do
            grep -q "(symver)LIBGGUF_$node " debian/libgguf0.symbols ||
                echo "debian/libgguf0.symbols: no LIBGGUF_$node"
        done
) >"$tmp/out"
test ! -s "$tmp/out" && test "$(wc -l <"$tmp/modules")" -ge 7 &&
    test -s "$tmp/programs"
verdict 'packages are of this version, with its libraries and programs' $? \
    "$tmp/out"
# Packages give configure options that it has: it ignores others.
options() # names after enable, disable, with and without, first on a line
{
    sed -n 's/^ *--\(enable\|disable\|with\|without\)-\([a-z-]*\).*/\2/p' |
        sort -u
}
"$srcdir/configure" --help | options >"$tmp/has"
cat "$srcdir"/packaging/* "$srcdir/debian/rules" | sed '/^#/d' |
    tr ' "' '\n\n' | options >"$tmp/given"
grep -q '^static$' "$tmp/has" && grep -q '^static$' "$tmp/given" &&
    ! grep -vxFf "$tmp/has" "$tmp/given" >"$tmp/out"
verdict 'configure has the options that packages give it' $? "$tmp/out"
# Files in a language are read by it, if it is here.
for reader in 'sh -n APKBUILD' 'bash -n PKGBUILD' 'ruby -c libgguf.rb' \
    'python3 -m json.tool libgguf.json'; do
    if command -v "${reader%% *}" >/dev/null 2>&1; then
        # shellcheck disable=SC2086 # words
        (cd "$srcdir/packaging" && $reader) >"$tmp/out" 2>&1
        verdict "$reader" $? "$tmp/out"
    else
        skip "$reader" 'not installed'
    fi
done

# ---- install
prefix=$(sed -n 's/^prefix = //p' "$builddir/Makefile")
if test "$(sed -n 's/^host_alias = //p' "$builddir/Makefile")" != ''; then
    skip 'make install' 'a cross build'
    done_testing
    exit
fi
(cd "$builddir" && $MAKE -s install DESTDIR="$tmp/to") >"$tmp/log" 2>&1
verdict 'make install DESTDIR=DIR' $? "$tmp/log"
to=$tmp/to$prefix
(cd "$tmp/to" && find . ! -type d | sed "s|^\.$prefix/||" | sort) >"$tmp/files"
cat >"$tmp/want" <<'END'
include/gguf/gguf.h
lib/pkgconfig/libgguf.pc
share/doc/libgguf/COPYING
share/doc/libgguf/ChangeLog
share/doc/libgguf/README
share/doc/libgguf/generate.c
share/doc/libgguf/tour.md
share/doc/libgguf/tiny-llama/demo.sh
share/doc/libgguf/tiny-llama/persuasion.txt
share/doc/libgguf/tiny-llama/tiny-llama-f16.gguf
share/man/man3/gguf_file_open.3
share/man/man3/libgguf_file.3
share/man/man7/gguf-architectures.7
END
if grep -q '^BUILD_TOOLS_TRUE = *$' "$builddir/Makefile"; then
    cat >>"$tmp/want" <<'END'
bin/gguf-info
share/libgguf/gguf-quantize.schema.json
share/man/man1/gguf-info.1
END
fi
if test -e "$builddir/completion/bash/gguf-info"; then
    echo share/bash-completion/completions/gguf-quantize >>"$tmp/want"
fi
if test -e "$builddir/completion/zsh/_gguf-info"; then
    echo share/zsh/site-functions/_gguf-quantize >>"$tmp/want"
fi
# Other folders than the usual ones were chosen: compare names alone.
sed 's|.*/||' "$tmp/files" | sort >"$tmp/names"
sed 's|.*/||' "$tmp/want" | sort | comm -23 - "$tmp/names" >"$tmp/out"
test ! -s "$tmp/out"
verdict 'the library, documents, the model and completion are installed' $? "$tmp/out"
test "$(find "$tmp/to" -name demo.sh -perm -100 | wc -l)" -eq 1
verdict 'the demo can be run' $? "$tmp/files"

# ---- who has which file
# With the usual folders, each file is in one of Debian's packages, or listed
# as left out; likewise with the spec. Print the files that no pattern of a
# list covers; a folder covers its content.
uncovered() # list of patterns
{
    while read -r f; do
        while read -r p; do
            # shellcheck disable=SC2254 # patterns
            case $f in $p | $p/*) continue 2 ;; esac
        done <"$1"
        echo "$f: in no package"
    done <"$tmp/files"
}
if grep -q '^share/doc/libgguf/README$' "$tmp/files" &&
    grep -q '^bin/gguf-info$' "$tmp/files"; then
    sed 's| .*||; s|^usr/||; s|^lib/\*/|lib/|; s|vendor-completions|site-functions|' \
        "$srcdir"/debian/*.install "$srcdir/debian/not-installed" >"$tmp/covers"
    uncovered "$tmp/covers" >"$tmp/out"
    test ! -s "$tmp/out"
    verdict "Debian's packages have every file" $? "$tmp/out"
    if command -v rpmspec >/dev/null 2>&1; then
        rpmspec -P --define '_libdir lib' --define '_bindir bin' \
            --define '_includedir include' --define '_datadir share' \
            --define '_mandir share/man' --define '_docdir share/doc' \
            "$srcdir/packaging/libgguf.spec" >"$tmp/spec" 2>"$tmp/err"
        {
            sed -n '/^%files/,/^%changelog/s/^%doc //p
                /^%files/,/^%changelog/p' "$tmp/spec" |
                grep -v '^%\|^$'
            # left out by its sections build and install
            printf '%s\n' lib/libgguf.a lib/libgguf.la share/doc/libgguf/COPYING
        } >"$tmp/covers"
        uncovered "$tmp/covers" >"$tmp/out"
        test ! -s "$tmp/out" -a ! -s "$tmp/err"
        verdict 'the spec is read, and its packages have every file' $? \
            "$tmp/out"
    else
        skip 'the packages of the spec' 'there is no rpmspec'
    fi
fi

# ---- what pkg-config says of it
pc=$(find "$tmp/to" -name libgguf.pc)
grep -q "^Version: $version$" "$pc" && grep -q '^URL: https://.' "$pc" &&
    grep -q '^License: MIT$' "$pc" && grep -q '^MIT License$' "$srcdir/COPYING"
verdict 'libgguf.pc has the version, the URL and the licence of COPYING' $? "$pc"

# ---- uninstall, of a prefix that may itself be in a folder of such a name
prefix=$(sed -n 's/^prefix = //p' "$builddir/Makefile")
(cd "$builddir" && $MAKE -s uninstall DESTDIR="$tmp/to") >"$tmp/log" 2>&1
verdict 'make uninstall' $? "$tmp/log"
{
    find "$tmp/to" ! -type d
    find "$tmp/to" -type d '(' -name '*gguf*' -o -name tiny-llama -o -name recipes ')' |
        "${AWK-awk}" -v prefix="$tmp/to$prefix/" 'index(prefix, $0 "/") != 1'
} >"$tmp/out"
test ! -s "$tmp/out"
verdict 'it leaves no file, and no folder of ours' $? "$tmp/out"
done_testing
