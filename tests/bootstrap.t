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
for p in sh cat cut tr sed grep dirname mkdir tail sort rm touch env; do
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
echo 'echo made >>"$LOG"' | program make
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
        export FAKE_UID REFUSED PATH THERE LOG
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
done_testing
