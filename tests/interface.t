#!/bin/sh
# SPDX-License-Identifier: MIT
# Public headers keep the rules of the interface: names come in pairs, yes and no
# are bool, a callback and its pointer are one struct, every status is checked,
# and all structs have one initialiser. HACKING, "Rules", lists them.
#
#     tests/interface.t                     the test, in the build folder
#     tests/interface.t --list [HEADER]...  print the declarations found
set -u
. "${srcdir:-.}/tests/tap.sh"

# "RULE | ADVICE".
cat >"$tmp/rules" <<'END'
accessor | an accessor has no get_: gguf_file_n_tensors()
check    | GGUF_API GGUF_MUST_CHECK enum gguf_status
init     | set up the struct with GGUF_INIT(struct gguf_x)
flag     | bool; or an enum, if it has more than two values
callback | struct gguf_x_callback { gguf_x_fn *fn; void *user; }
stop     | bool: true stops
pair     | open with close, create with destroy
macro    | another name: a C library may define this one as a macro
END

# Declarations that headers may still have. Numbers only become smaller.
cat >"$tmp/allowed" <<'END'
init 2
END

# Exceptions, "RULE NAME": numbers, where -1 means none; gguf_error_set() returns
# its argument; a context destroys its tensors and graphs; a device creates
# backends; a job of a conversion is a gguf_quant.
cat >"$tmp/exceptions" <<'END'
flag sys_errno
flag gguf_digest_algo_find
flag gguf_val_type_find
check gguf_error_set
pair gguf_tensor_create
pair gguf_tensor_create_like
pair gguf_graph_create
pair gguf_convert_create_job
pair gguf_device_create_backend
END

# ---------------------------------------------------------------- the reader ---
# "FILE:LINE: RULE: NAME" for each declaration that breaks a rule. A declaration
# ends with ";", the head of a struct with "{".
cat >"$tmp/interface.awk" <<'END'
function found(rule, name)
{
    print FILENAME ":" start ": " rule ": " name
}
function last_word(s)
{
    sub(/[^A-Za-z0-9_]*$/, "", s); sub(/.*[^A-Za-z0-9_]/, "", s)
    return s
}
function member(code,    name)
{
    name = code
    sub(/\[.*/, "", name); sub(/ :.*/, "", name)
    if (code ~ /\(\*/) { sub(/.*\(\*/, "", name); sub(/\).*/, "", name) }
    name = last_word(name)
    if (code ~ /^ *int [a-z_]/) found("flag", name)
    if (code ~ /gguf_[a-z0-9_]*_fn \*/) { n_fn++; fn_name = name }
    if (code ~ /void \*user/) has_user = 1
    if (name ~ /^(mem(set|cpy|move|cmp|chr)|str(cpy|cat|cmp|len|chr|dup)|assert|errno|std(in|out|err)|(get|put)c(har)?|is(alpha|digit|space)|to(upper|lower)|major|minor|unix|linux)$/)
        found("macro", name)
}
function prototype(code,    name, rest)
{
    gsub(/__attribute__ *\(\([^;]*\)\)/, "", code)
    gsub(/GGUF_PRINTF\([^)]*\)/, "", code)
    gsub(/int (fd|argc)[,)]/, "", code)
    name = code
    sub(/\(.*/, "", name); name = last_word(name)
    rest = code; sub(/^[^(]*/, "", rest)
    if (code ~ /^ *typedef/) {
        if (code ~ /^ *typedef int gguf_[a-z0-9_]*_fn/) found("stop", name)
        return
    }
    if (code !~ /GGUF_API/) return
    functions[name] = FILENAME ":" start
    if (name ~ /_get_/ && name !~ /^gguf_(kv_get|tensor_get|meta_get|op_get)/ &&
        name !~ /_get_async$/)
        found("accessor", name)
    if (code ~ /GGUF_API [A-Z_ ]*enum gguf_status [a-z]/ && code !~ /GGUF_MUST_CHECK/)
        found("check", name)
    if (code ~ /GGUF_API [A-Z_ ]*int [a-z]/) found("flag", name)
    if (rest ~ /[(,] *int [a-z_]+[,)]/) found("flag", name)
    if (rest ~ /gguf_[a-z0-9_]*_fn \*/) found("callback", name)
}
FNR == 1 { comment = depth = 0; code = "" }
{
    line = $0
    if (!comment && line ~ /^[ \t]*#/) {
        if (match(line, /define GGUF_[A-Z0-9_]*_INIT/)) {
            start = FNR
            macro = substr(line, RSTART + 7, RLENGTH - 7)
        }
        directive = 1
    }
    if (directive) {
        if (line ~ /GGUF_INIT\(/) macro = ""
        directive = line ~ /\\$/
        if (!directive && macro != "") { found("init", macro); macro = "" }
        next
    }
    while (line != "") {
        if (comment) {
            at = index(line, "*/")
            if (!at) break
            line = substr(line, at + 2); comment = 0
            continue
        }
        if (!match(line, /\/\*|[;{}]/)) { text = line; line = ""; mark = "" }
        else {
            text = substr(line, 1, RSTART - 1); mark = substr(line, RSTART, RLENGTH)
            line = substr(line, RSTART + RLENGTH)
        }
        if (code ~ /^[ \t]*$/ && text ~ /[^ \t]/) start = FNR
        code = code " " text
        if (mark == "/*") comment = 1
        else if (mark == "{" && code ~ /extern "C"/) code = ""
        else if (mark == "{") {
            if (code ~ /struct gguf_[a-z0-9_]+ *$/ && !depth) {
                tag = last_word(code); tag_start = start
                n_fn = has_user = 0
            }
            in_struct[++depth] = code ~ /struct/
            code = ""
        } else if (mark == "}") {
            if (depth == 1 && tag != "" && n_fn == 1 && has_user &&
                tag !~ /_callback$/) {
                start = tag_start
                found("callback", tag "." fn_name)
            }
            if (depth > 0) depth--
            if (!depth) tag = ""
            code = ""
        } else if (mark == ";") {
            gsub(/[ \t]+/, " ", code)
            if (depth && in_struct[depth]) member(code)
            else if (!depth && code ~ /\(/) prototype(code)
            code = ""
        }
    }
}
END {
    # An object of a kind, such as gguf_cpu_backend, is destroyed as that kind.
    for (name in functions) {
        base = name
        if (name !~ /_is_open$/ && sub(/_open(_[a-z]+)?$/, "", base) && !((base "_close") in functions))
            print functions[name] ": pair: " name
        base = name
        if (sub(/_create(_[a-z]+)?$/, "", base) &&
            !((base "_destroy") in functions)) {
            kind = name
            sub(/^gguf_[a-z]+_/, "gguf_", base)
            sub(/.*_create_/, "gguf_", kind)
            if (!((base "_destroy") in functions) &&
                !((kind "_destroy") in functions))
                print functions[name] ": pair: " name
        }
        base = name
        if (sub(/_close$/, "", base) && !((base "_open") in functions) && !((base "_open_path") in functions))
            print functions[name] ": pair: " name
        if (name ~ /_(free|new|delete|dispose)$/)
            print functions[name] ": pair: " name
    }
}
END
list_faults() # headers
{
    ${AWK} -f "$tmp/interface.awk" "$@" |
        ${AWK} -v exceptions="$tmp/exceptions" '
        BEGIN { while ((getline row <exceptions) > 0) skip[row] = 1 }
        !(($2 $3) in skip) && !((substr($2, 1, length($2) - 1) " " $3) in skip)'
}

if test "${1-}" = --list; then
    shift
    test $# -gt 0 || set -- "$srcdir"/lib/gguf/*.h
    list_faults "$@" | sort
    exit 0
fi

# ------------------------------------------------------------------ self-check ---
cat >"$tmp/bad.h" <<'END'
#define GGUF_X_PARAMS_INIT { sizeof(struct gguf_x_params), 0 }
extern "C" {
/* GGUF_API int in_a_comment(void); */ typedef int gguf_x_fn(void *user);
struct gguf_x_params {
    size_t struct_size;
    int fast;
    gguf_x_fn *fn;
    void *user;
};
struct gguf_x_iface { void (*memset)(void *p); };
GGUF_API enum gguf_status gguf_x_open(
    struct gguf_x **out, gguf_x_fn *fn, void *user);
GGUF_API void gguf_x_destroy(struct gguf_x *x);
GGUF_API size_t gguf_x_get_size(const struct gguf_x *x);
GGUF_API int gguf_x_is_fast(const struct gguf_x *x);
END
cat >"$tmp/good.h" <<'END'
#define GGUF_X_PARAMS_INIT \
    GGUF_INIT(struct gguf_x_params)
typedef bool gguf_x_fn(void *user);
struct gguf_x_callback { gguf_x_fn *fn; void *user; };
struct gguf_x_params {
    size_t struct_size;
    bool fast;
    int sys_errno;
    struct gguf_x_callback progress;
};
GGUF_API GGUF_MUST_CHECK enum gguf_status gguf_x_create(
    struct gguf_x **out, struct gguf_x_callback fn);
GGUF_API void gguf_x_destroy(struct gguf_x *x);
GGUF_API size_t gguf_x_size(const struct gguf_x *x);
END
list_faults "$tmp/bad.h" | sed 's/^[^:]*://' | LC_ALL=C sort >"$tmp/found"
printf '%s\n' '1: init: GGUF_X_PARAMS_INIT' '11: callback: gguf_x_open' \
    '11: check: gguf_x_open' '11: pair: gguf_x_open' \
    '14: accessor: gguf_x_get_size' '15: flag: gguf_x_is_fast' \
    '3: stop: gguf_x_fn' '4: callback: gguf_x_params.fn' '6: flag: fast' \
    '10: macro: memset' | LC_ALL=C sort | cmp -s - "$tmp/found"
verdict "every rule finds its fault" $? "$tmp/found"
list_faults "$tmp/good.h" >"$tmp/log"
test ! -s "$tmp/log"
verdict "no rule finds a good declaration" $? "$tmp/log"

# -------------------------------------------------------------------- headers ---
list_faults "$srcdir"/lib/gguf/*.h | sed "s,^$srcdir/,," | sort >"$tmp/found"
while IFS='|' read -r rule advice; do
    rule=${rule%% *}
    grep ": $rule: " "$tmp/found" >"$tmp/log"
    count=$(wc -l <"$tmp/log")
    most=$(sed -n "s/^$rule //p" "$tmp/allowed")
    test "$count" -eq "${most:-0}" ||
        echo "# $rule: $((count)) declarations, allowed ${most:-0}"
    echo "write$advice" >>"$tmp/log"
    test "$count" -le "${most:-0}"
    verdict "$rule:$advice" $? "$tmp/log"
done <"$tmp/rules"
done_testing
