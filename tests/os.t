#!/bin/sh
# SPDX-License-Identifier: MIT
# The system has one room, lib/base/os: no other file of lib/ and tools/
# includes a header that is neither C11's, <pthread.h> nor that of a library
# that configure looks for, calls a function that C11 does not have, or asks
# which system it is compiled for. Only lib/base/os and lib/kern ask for the
# processor.
set -u
: "${srcdir:=.}"
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
cd "$srcdir" || exit 99
n=0
status=0
verdict() # name, offenders
{
    n=$((n + 1))
    if test -z "$2"; then echo "ok $n - $1"
    else echo "not ok $n - $1"; echo "$2" | sed 's/^/# /'; status=1; fi
}

# Headers: C11's, threads, libraries, and vectors of processors in lib/kern.
headers='assert complex ctype errno fenv float inttypes iso646 limits locale math
    setjmp signal stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib
    stdnoreturn string tgmath threads time uchar wchar wctype pthread
    xxhash zlib zstd lzma pcre2 jansson mpi cblas blis curl/curl'
kern_headers='immintrin arm_neon cpuid'

# Functions that C11 does not have, or that mean something else on another
# system: opening a stream, renaming and removing need names in UTF-8, and fmaf()
# must round once.
functions='open openat creat close read write pread pwrite preadv pwritev readv
    writev lseek fopen freopen fdopen fileno fseeko ftello tmpfile tmpnam remove
    rename renameat renameat2 link linkat symlink symlinkat readlink readlinkat
    unlink unlinkat mkdir mkdirat rmdir realpath access faccessat stat lstat
    fstat fstatat statvfs fstatvfs chmod fchmod fchmodat chown fchown umask
    utimensat futimens truncate ftruncate fallocate posix_fallocate fsync
    fdatasync sync_file_range copy_file_range sendfile posix_fadvise fcntl flock
    lockf ioctl dup dup2 pipe poll select isatty ttyname tcgetattr tcsetattr
    opendir fdopendir readdir rewinddir closedir dirfd glob globfree fnmatch
    getcwd chdir mkstemp mkdtemp mkfifo
    mmap munmap mprotect madvise posix_madvise msync mlock munlock
    posix_memalign memfd_create sysconf pathconf getrlimit setrlimit getrusage
    uname gethostname sched_getaffinity sched_setaffinity sched_yield
    pthread_sigmask pthread_setaffinity_np pthread_setname_np
    sigaction sigemptyset sigfillset sigaddset sigdelset sigprocmask
    sigsuspend kill raise signal alarm
    fork execv execve execvp execl execlp posix_spawn posix_spawnp waitpid
    popen pclose _exit getpid getppid getuid geteuid getgid getegid
    clock_gettime clock_nanosleep nanosleep sleep usleep gettimeofday
    localtime_r gmtime_r localtime gmtime strptime timegm
    getauxval elf_aux_info sysctlbyname getentropy getrandom random srandom drand48
    strerror_r strdup strndup strcasecmp strncasecmp strtok_r strsep stpcpy
    stpncpy strnlen strchrnul strcasestr memmem memrchr mempcpy wcwidth
    getline getdelim asprintf vasprintf dprintf open_memstream fmemopen
    flockfile funlockfile getc_unlocked putc_unlocked
    setenv unsetenv putenv newlocale uselocale freelocale nl_langinfo
    dlopen dlsym dlclose dlerror getopt getopt_long basename dirname
    regcomp regexec regfree socket connect syscall fma fmaf'

# Words of systems, in conditions of the preprocessor.
systems='__linux|__gnu_linux|__APPLE__|__MACH__|_WIN32|_WIN64|__MINGW|__CYGWIN__|__FreeBSD__|__NetBSD__|__OpenBSD__|__DragonFly__|__unix|__GLIBC|_GNU_SOURCE|_POSIX|_SC_|_DARWIN|__ANDROID__|HAVE_[A-Z_]*(FCNTL|LINUX|SYS_|UNISTD)|HAVE_(COPY_FILE_RANGE|FALLOCATE|FLOCK|GETENTROPY|MADVISE|POSIX_|RENAMEAT|SCHED_|PTHREAD_)|MADV_|MAP_|O_[A-Z]+|RLIMIT|RENAME_|FICLONE|SYNC_FILE'

# Words of processors there.
processors='__x86_64|__amd64|__i[3-6]86|_M_X64|_M_IX86|_M_ARM|__aarch64|__arm|__ARM_|__SSE|__AVX|__FMA__|__F16C__|__AMX|__riscv|__powerpc|__s390|__loongarch|__mips|HAVE_X86|HAVE_KERN|HAVE_ARM|KERN_256|X86_'

# "FILE:LINE: TEXT" of code without comments and strings.
find lib tools -name '*.[ch]' ! -path 'lib/base/os/*' | LC_ALL=C sort >"$tmp/files"
xargs awk '
    FNR == 1 { comment = 0; more = 0 }
    {
        line = $0; out = ""
        while (line != "") {
            if (comment) {
                at = index(line, "*/")
                if (!at) break
                line = substr(line, at + 2); comment = 0
            } else if (match(line, /\/\*|\/\/|"|'"'"'/)) {
                out = out substr(line, 1, RSTART - 1)
                mark = substr(line, RSTART, RLENGTH)
                line = substr(line, RSTART + RLENGTH)
                if (mark == "//") break
                if (mark == "/*") { comment = 1; continue }
                while (line != "" && substr(line, 1, 1) != mark)
                    line = substr(line, substr(line, 1, 1) == "\\" ? 3 : 2)
                line = substr(line, 2)
                out = out mark mark
            } else { out = out line; break }
        }
        if (out ~ /[^ ]/) print FILENAME ":" FNR ": " out
    }' <"$tmp/files" >"$tmp/code"

awk -v list="$headers" -v kern="$kern_headers" '
    BEGIN {
        k = split(list, a); for (i = 1; i <= k; i++) good[a[i] ".h"] = 1
        k = split(kern, a); for (i = 1; i <= k; i++) vector[a[i] ".h"] = 1
    }
    / # *include *<|: #include *</ {
        name = $0; sub(/^[^<]*</, "", name); sub(/>.*/, "", name)
        if (name in good || name ~ /^gguf\//) next
        if (name in vector && $0 ~ /^lib\/kern\//) next
        print
    }' "$tmp/code" >"$tmp/includes"
awk -v list="$functions" '
    BEGIN { k = split(list, a); for (i = 1; i <= k; i++) bad[a[i]] = 1 }
    {
        line = $0; sub(/^[^:]*:[0-9]*: /, "", line)
        if (line ~ /^ *# *include/) next
        while (match(line, /[A-Za-z_][A-Za-z_0-9]* *\(/)) {
            name = substr(line, RSTART, RLENGTH - 1); sub(/ *$/, "", name)
            before = substr(line, 1, RSTART - 1)
            line = substr(line, RSTART + RLENGTH)
            # members of structures are none
            if (name in bad && before !~ /(\.|->)$/) { print; break }
        }
    }' "$tmp/code" >"$tmp/calls"
grep -E ': *# *(if|ifdef|ifndef|elif)' "$tmp/code" |
    tee "$tmp/conditions" |
    grep -E "[^A-Za-z_0-9]($systems)" >"$tmp/asks"
grep -v '^lib/kern/' "$tmp/conditions" |
    grep -E "[^A-Za-z_0-9]($processors)" >"$tmp/asks-processor"

verdict 'only lib/base/os includes headers of the system' \
    "$(cat "$tmp/includes")"
verdict 'only lib/base/os calls functions of the system' "$(cat "$tmp/calls")"
verdict 'only lib/base/os asks for the system' "$(cat "$tmp/asks")"
verdict 'only lib/base/os and lib/kern ask for the processor' \
    "$(cat "$tmp/asks-processor")"
verdict 'lib/base/os includes no header of another room' "$(
    grep -Hn '^ *# *include *"' lib/base/os/*.[ch] |
        grep -vE '"(config\.h|base/os/[a-z_]*\.h)"')"
verdict 'some code was looked at' \
    "$(awk 'END { if (NR < 10000) print NR }' "$tmp/code")"
echo "1..$n"
exit $status
