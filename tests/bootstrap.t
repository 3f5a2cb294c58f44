#!/bin/sh
# SPDX-License-Identifier: MIT
# ./bootstrap installs libraries that the build needs, and libraries of features if the
# system has them; missing features do not stop it. The package manager and the
# programs that build are stubs, in a PATH of their own.
set -u
. "${srcdir:-.}/tests/tap.sh"
top=$tmp/top stub=$tmp/stub
mkdir "$top" "$stub" "$tmp/there" || exit 99
cp "$srcdir/bootstrap" "$top/bootstrap" && chmod +x "$top/bootstrap" || exit 99
: >"$top/configure.ac"
for p in sh cat cut tr sed grep dirname mkdir tail sort rm touch env mv; do
    ln -s "$(command -v $p)" "$stub/$p" || exit 99
done

program() # name; its text is standard input
{
    {
        echo '#!/bin/sh'
        cat
    } >"$stub/$1"
    chmod +x "$stub/$1"
}
for p in gcc cc autoreconf automake libtoolize; do
    echo 'exit 0' | program $p
done
echo 'test "$1" != -u || echo "$FAKE_UID"' | program id
echo 'echo 2' | program getconf
gnu_make() # name
{
    program "$1" <<'END'
if test "$1" = --version; then echo 'GNU Make 4.3'
else echo made >>"$LOG"; fi
END
}
gnu_make make
echo 'test -e "$THERE/$2"' | program pkg-config
# Installing a package makes its pkg-config module, except those of $REFUSED.
program apt-get <<'END'
echo "apt-get $*" >>"$LOG"
test "$1" = install || exit 0
for p; do
    case " $REFUSED " in *" $p "*) exit 100 ;; esac
    case $p in
    zlib1g-dev) touch "$THERE/zlib" ;;
    libxxhash-dev) touch "$THERE/libxxhash" ;;
    libpcre2-dev) touch "$THERE/libpcre2-8" ;;
    libjansson-dev) touch "$THERE/jansson" ;;
    libcurl4-openssl-dev) touch "$THERE/libcurl" ;;
    liblzma-dev) touch "$THERE/liblzma" ;;
    libzstd-dev) touch "$THERE/libzstd" ;;
    esac
done
END
{
    echo '#!/bin/sh'
    echo 'echo configured >>"$LOG"; : >Makefile'
} >"$top/configure"
chmod +x "$top/configure"

run() # uid, packages that are refused
{
    (
        FAKE_UID=$1 REFUSED=$2 PATH=$stub THERE=$tmp/there LOG=$tmp/log
        STUB=$stub
        export FAKE_UID REFUSED PATH THERE LOG STUB
        unset CONFIG_SHELL CC CFLAGS BUILDDIR CONFIGURE_FLAGS
        test -z "${flags-}" || export CONFIGURE_FLAGS="$flags"
        "$top/bootstrap"
    ) >"$tmp/out" 2>&1
    rc=$?
    cat "$tmp/log" >>"$tmp/out" 2>/dev/null
}
boot() # uid, packages that are refused, modules that are there...: afresh
{
    rm -rf "$tmp/there" "$top/build" "$tmp/log"
    mkdir "$tmp/there"
    uid=$1 refused=$2
    shift 2
    for module; do
        : >"$tmp/there/$module"
    done
    run "$uid" "$refused"
}
built() { test $rc -eq 0 && grep -q '^made$' "$tmp/log"; }
needs='zlib libxxhash libpcre2-8 jansson'

boot 0 ''
built && test "$(grep -c '^apt-get update' "$tmp/log")" -eq 1 &&
    grep -q '^apt-get install .*zlib1g-dev.*libjansson-dev' "$tmp/log" &&
    test "$(ls "$tmp/there" | tr '\n' ' ')" = \
        'jansson libcurl liblzma libpcre2-8 libxxhash libzstd zlib ' &&
    ! grep -q 'left out' "$tmp/out"
verdict 'with nothing there all is installed, also for features' $? "$tmp/out"
boot 0 '' $needs libcurl liblzma libzstd
built && ! grep -q '^apt-get' "$tmp/log"
verdict 'with all there nothing is installed' $? "$tmp/out"
boot 0 libzstd-dev $needs
built && test -e "$tmp/there/libcurl" -a -e "$tmp/there/liblzma" &&
    test "$(grep -c 'left out: ' "$tmp/out")" -eq 1 &&
    grep -q 'left out: texts packed by zstd, without libzstd (apt-get .*failed)' \
        "$tmp/out"
verdict 'a package that fails is left out alone, and said' $? "$tmp/out"
boot 1000 '' $needs liblzma libzstd
built && ! grep -q '^apt-get' "$tmp/log" &&
    grep -q 'left out: models on servers, without libcurl (only root may: .*apt-get install .* libcurl4-openssl-dev' \
        "$tmp/out"
verdict 'without root, too: with what root would type' $? "$tmp/out"
run 0 ''
built && test "$(grep -c '^configured$' "$tmp/log")" -eq 2
verdict 'what is installed later is found: configured again' $? "$tmp/out"
boot 1000 '' zlib
test $rc -eq 1 && ! grep -q '^made$' "$tmp/log" 2>/dev/null &&
    grep -q 'missing: xxHash PCRE2 .*(only root may: .*libxxhash-dev' "$tmp/out"
verdict 'what the build needs stops it' $? "$tmp/out"
boot 0 libjansson-dev
test $rc -eq 1 && grep -q 'still missing: .*Jansson' "$tmp/out"
verdict 'also if a package fails' $? "$tmp/out"
flags=--with-curl=no
boot 1000 '' $needs liblzma libzstd
flags=
built && ! grep -q 'left out' "$tmp/out"
verdict 'what CONFIGURE_FLAGS refuses is not wanted' $? "$tmp/out"
rm "$stub/apt-get"
boot 0 '' $needs
built && test "$(grep -c 'left out: .*no package manager' "$tmp/out")" -eq 3
verdict 'without a package manager it builds' $? "$tmp/out"

# FreeBSD: make is another, GNU's is gmake; zlib and liblzma are parts of the
# system.
program make <<'END'
echo "other $*" >>"$LOG"
exit 2
END
boot 0 '' $needs
test $rc -eq 1 && ! grep -q '^other -C' "$tmp/log" &&
    grep -q 'missing: GNU-make - install .*no package manager' "$tmp/out"
verdict "another make than GNU's is not used" $? "$tmp/out"
program pkg <<'END'
echo "pkg $ASSUME_ALWAYS_YES $*" >>"$LOG"
for p; do
    case $p in
    gmake) mv "$STUB/gmake.off" "$STUB/gmake" ;;
    xxhash) touch "$THERE/libxxhash" ;;
    pcre2) touch "$THERE/libpcre2-8" ;;
    jansson) touch "$THERE/jansson" ;;
    curl) touch "$THERE/libcurl" ;;
    zstd) touch "$THERE/libzstd" ;;
    esac
done
END
gnu_make gmake && mv "$stub/gmake" "$stub/gmake.off" || exit 99
boot 0 '' zlib liblzma
built && grep -q '^pkg yes install gmake xxhash pcre2 jansson$' "$tmp/log"
verdict 'FreeBSD: gmake and what its system lacks are installed' $? "$tmp/out"
boot 0 '' zlib liblzma
built && ! grep -q '^other -C' "$tmp/log"
verdict 'gmake that is there is used' $? "$tmp/out"
rm "$stub/pkg" "$stub/gmake"

# Alpine: lists of packages are fetched first, as the system's images lack them.
gnu_make make
program apk <<'END'
echo "apk $*" >>"$LOG"
test "$1" = add || exit 0
for p; do
    case $p in
    zlib-dev) touch "$THERE/zlib" ;;
    xxhash-dev) touch "$THERE/libxxhash" ;;
    pcre2-dev) touch "$THERE/libpcre2-8" ;;
    jansson-dev) touch "$THERE/jansson" ;;
    curl-dev) touch "$THERE/libcurl" ;;
    xz-dev) touch "$THERE/liblzma" ;;
    zstd-dev) touch "$THERE/libzstd" ;;
    esac
done
END
boot 0 ''
built && ! grep -q 'left out' "$tmp/out" &&
    test "$(sed -n '/^apk/{p;q;}' "$tmp/log")" = 'apk update' &&
    test "$(grep -c '^apk update' "$tmp/log")" -eq 1
verdict 'Alpine: with the list of packages, all is installed' $? "$tmp/out"
done_testing
