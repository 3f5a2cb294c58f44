#!/bin/sh
# SPDX-License-Identifier: MIT
# Sentences that a reader has to read twice: in comments, messages, manual pages,
# texts of --help and documents, by the rules below. HACKING, "How sentences read",
# explains them. A rule finds a shape of words: a sentence without one may still
# be bad, and an area may keep a few good ones that look bad.
#
#     tests/sentences.t                     the test, in the build folder
#     tests/sentences.t --list [FILE]...    print the sentences found in FILEs
set -u
. "${srcdir:-.}/tests/tap.sh"

# ----------------------------------------------------------------- the rules ---
# "RULE PLACE | PHRASES | ADVICE". PLACE is "begins", the first words of a
# comment; "beside", the first words of one that stands beside code; or
# "anywhere". Phrases in angle brackets are good ones that contain a bad one.
cat >"$tmp/rules" <<'END'
opening begins | of, that of, those of, the same, whose, what, whether, which, as many, as much, likewise, such, none, nothing, how many | the thing first, then its relation to others
fragment beside | and, or, but, then, where, unless, if, with, without, for, from, to, by, as, at, in, <at least>, <at most> | a noun with its unit, or a sentence of its own
clause anywhere | what is, what are, what was, what were, what has, what have, what had, what goes, what comes, what can, what may, what must, what they, what it, what a, what the, what one, what other, what others | the name of the thing
belongs anywhere | is of, are of, was of, were of, be of | "has" or "belongs to"
missing anywhere | that there is, that there are, there is no, there is none, there are no, there are none, has none, that is none, that are none, that is no, that are no, is no, are no, <is no longer>, <are no longer> | "has no X", "is not an X", "X is missing"
amount anywhere | so many, so much, as many, as much, how many, how much | "the number of", "n bytes", "at most n"
relative anywhere | of which, of whose, of whom | two sentences
quaint anywhere | by chance, as it comes, gone on, goes on from, in vain, is had, are had, to be had, is told, are told, for want of, it were, thereof, wherein | the usual word: random, continues, ignored, gets, missing
END

# "RULE|BAD|GOOD": a bad sentence, and a good one with the same meaning.
cat >"$tmp/examples" <<'END'
opening|/* Of one graph; used again for the next. */|/* Scratch for one graph; reused for the next. */
opening|/* Whether a key is there. */|/* Is there a key? */
fragment|int n; /* and their number */|int n; /* number of keys */
fragment|int n; /* without the last chunk */|int n; /* chunks; the last one is left out */
clause|/* Keeps what was read. */|/* Keeps the bytes that were read. */
clause|/* Frees what the reader made: all of it. */|/* Frees the reader's objects. */
belongs|/* The row is of another layer. */|/* The row belongs to another layer. */
missing|/* Fails where there is no key. */|/* Fails if the key is missing. */
missing|/* A name that is none. */|/* A malformed name. */
missing|/* The vocabulary has none. */|/* The vocabulary has no BOS. The plan is no longer valid. */
amount|/* Room for so many rows. */|/* Room for n rows. */
relative|/* Layers, of which each has a norm. */|/* Layers. Each has a norm. */
quaint|/* A row by chance. */|/* A random row. */
quaint|/* The message is gone on from here. */|/* The message continues here. */
END

# Number of sentences that an area may still have. It only becomes smaller; an
# area without a line must have none.
cat >"$tmp/allowed" <<'END'
doc 5
lib/graph 1
man 4
messages 1
END

# ---------------------------------------------------------------- the reader ---
# "FILE:LINE<tab>PLACE<tab>TEXT" for each comment of a C file: PLACE is "beside"
# code or "above" it.
cat >"$tmp/comments.awk" <<'END'
function next_token(s) # where the next string, character or comment begins
{
    return match(s, /"|'|\/\*/) ? RSTART : 0
}
FNR == 1 { inside = 0 }
!inside && !index($0, "/*") { next }
{
    rest = $0; before = ""
    while (rest != "") {
        if (!inside) {
            at = next_token(rest)
            if (!at) break
            before = before substr(rest, 1, at - 1); rest = substr(rest, at)
            if (match(rest, /^("([^"\\]|\\.)*"|'([^'\\]|\\.)*')/)) {
                before = before "x"; rest = substr(rest, RLENGTH + 1)
                continue
            }
            if (substr(rest, 1, 2) != "/*") { # a quote that does not end
                before = before "x"; rest = substr(rest, 2)
                continue
            }
            place = before ~ /[^ \t]/ ? "beside" : "above"
            rest = substr(rest, 3); inside = 1; text = ""; line = FNR
        }
        end = index(rest, "*/"); part = end ? substr(rest, 1, end - 1) : rest
        sub(/^[ \t]*\*+[ \t]?/, "", part)
        text = text " " part
        if (!end) break
        inside = 0; rest = substr(rest, end + 2)
        if (text !~ /SPDX-License/) print FILENAME ":" line "\t" place "\t" text
    }
}
END

# A paragraph of a manual page, without macros. PLACE is "page".
cat >"$tmp/man.awk" <<'END'
function flush()
{
    if (text != "") print file ":" line "\tpage\t" text
    text = ""
}
FNR == 1 { flush(); example = 0; file = FILENAME }
/^\.(EX|nf|TS)/ { flush(); example = 1 }
/^\.(EE|fi|TE)/ { example = 0 }
example || /^[.']\\"/ { next }
/^\.(B|I|BR|IR|BI|IB|RB|RI) / { sub(/^\.[A-Z]+ /, "") }
/^\.(SH|SS|TH|TP|PP|P|LP|IP|RS|RE|EE|fi|sp|br)/ { flush(); next }
/^[.']/ { next }
{
    gsub(/\\f[A-Z]|\\&|"/, ""); gsub(/\\-/, "-")
    if (text == "") line = FNR
    text = text " " $0
}
END { flush() }
END

# A paragraph of a document, without code and tables. PLACE is "page".
cat >"$tmp/document.awk" <<'END'
function flush()
{
    if (text != "") print file ":" line "\tpage\t" text
    text = ""
}
FNR == 1 { flush(); example = 0; file = FILENAME }
/^```/ { flush(); example = !example; next }
example || /^(    |\t)/ || /^[|#=-]/ || /^[ \t]*$/ { flush(); next }
{
    gsub(/`[^`]*`/, "x")
    if (text == "") line = FNR
    text = text " " $0
}
END { flush() }
END

# A comment of a script: lines that begin with "#". PLACE is "above".
cat >"$tmp/script.awk" <<'END'
function flush()
{
    if (text != "") print file ":" line "\tabove\t" text
    text = ""
}
FNR == 1 { flush(); file = FILENAME }
/^[ \t]*#+ / && !/SPDX-License|^#!/ {
    words = $0
    sub(/^[ \t]*#+ /, "", words)
    if (words ~ /^ /) { flush(); next } # an example
    if (text == "") line = FNR
    text = text " " words
    next
}
{ flush() }
END { flush() }
END

# The text of a row of options: { "--name", "VALUE", "text", OPT_... PLACE is
# "page".
cat >"$tmp/help.awk" <<'END'
FNR == 1 { row = 0 }
!row && /^ *\{ *("-|NULL, *"-)/ { row = 1; text = ""; line = FNR }
row {
    rest = $0
    while (match(rest, /"([^"\\]|\\.)*"/)) {
        part = substr(rest, RSTART + 1, RLENGTH - 2)
        rest = substr(rest, RSTART + RLENGTH)
        if (part !~ /^-/ && part !~ /^[A-Z_.,|\[\]=:-]*$/) text = text part
    }
    if (/OPT_|\}/) {
        row = 0
        if (text != "") print FILENAME ":" line "\tpage\t" text
    }
}
END

# The strings of a message to users. PLACE is "page".
cat >"$tmp/message.awk" <<'END'
FNR == 1 { inside = 0 }
!inside && /(gg_error_set(_[a-z]+)?|fail_at|msg_error|msg_warn|opt_usage)\(/ {
    inside = 1; text = ""; line = FNR
}
inside {
    rest = $0
    while (match(rest, /"([^"\\]|\\.)*"/)) {
        text = text " " substr(rest, RSTART + 1, RLENGTH - 2)
        rest = substr(rest, RSTART + RLENGTH)
    }
    if (/[;{][ \t]*$/) {
        inside = 0
        if (text != "") print FILENAME ":" line "\tpage\t" text
    }
}
END

# Applies the rules: "FILE:LINE: RULE: WORDS [write ADVICE]" for each comment and
# rule.
cat >"$tmp/rules.awk" <<'END'
function trim(s) { gsub(/^ +| +$/, "", s); return s }
BEGIN {
    FS = "\t"
    while ((getline row <rules) > 0) {
        split(row, part, "|")
        split(trim(part[1]), head, " ")
        n_phrases = split(part[2], list, ",")
        for (i = 1; i <= n_phrases; i++) {
            phrase = trim(list[i])
            if (phrase ~ /^</) {
                gsub(/[<>]/, "", phrase)
                good[++n_good] = " " phrase " "
                continue
            }
            phrases[++n] = " " phrase " "
            rule[n] = head[1]; where[n] = head[2]; advice[n] = trim(part[3])
        }
    }
}
{
    # words between single blanks; the end of a sentence is a word, too
    text = tolower($3)
    gsub(/[.;:!?]( |$)/, " . ", text)
    gsub(/[^a-z0-9_.'-]+/, " ", text)
    text = " " text " "
    gsub(/  +/, " ", text)
    for (i = 1; i <= n_good; i++)
        while ((at = index(text, good[i])) > 0)
            text = substr(text, 1, at) "x" substr(text, at + length(good[i]) - 1)
    found = ""
    for (i = 1; i <= n; i++) {
        at = index(text, phrases[i])
        if (!at || (where[i] != "anywhere" && (at > 1 || $2 == "page")) ||
            (where[i] == "beside" && $2 != "beside") ||
            index(found, " " rule[i] " "))
            continue
        found = found " " rule[i] " "
        from = at > 40 ? at - 40 : 1
        printf "%s: %s: %s [write %s]\n", $1, rule[i],
            (from > 1 ? "..." : "") trim(substr(text, from, 110)), advice[i]
    }
}
END

read_files() # paths on standard input; comments and paragraphs
{
    sort >"$tmp/read"
    grep '\.[ch]$' "$tmp/read" | xargs ${AWK} -f "$tmp/comments.awk" /dev/null
    grep '\.[1-9]\(in\)\{0,1\}$' "$tmp/read" | xargs ${AWK} -f "$tmp/man.awk" /dev/null
    grep -E '\.md$|(^|/)(README|HACKING)$' "$tmp/read" |
        xargs ${AWK} -f "$tmp/document.awk" /dev/null
    grep -E '\.(t|sh|m4|ac|am|inc|awk|py)$|(^|/)bootstrap$' "$tmp/read" |
        xargs ${AWK} -f "$tmp/script.awk" /dev/null
    grep -E '^tools/.*\.[ch]$' "$tmp/read" |
        xargs ${AWK} -f "$tmp/help.awk" /dev/null
}
read_messages()
{
    grep -E '^(lib|tools)/.*\.c$' | sort |
        xargs ${AWK} -f "$tmp/message.awk" /dev/null
}
apply_rules()
{
    ${AWK} -v rules="$tmp/rules" -f "$tmp/rules.awk"
}

whole='lib tools tests doc man m4 bootstrap configure.ac Makefile.am README HACKING'
list_files() # files and folders
{
    find "$@" -type f ! -name '*_tab.*' ! -name 'lt*.m4' ! -name libtool.m4
}

# ------------------------------------------------------------------ a list ---
if test "${1-}" = --list; then
    shift
    test $# -gt 0 || set -- $whole
    cd "$srcdir" || exit 99
    list_files "$@" >"$tmp/files"
    { read_files <"$tmp/files"; read_messages <"$tmp/files"; } | apply_rules
    exit 0
fi

# ------------------------------------------------------------------ self-check ---
: >"$tmp/log"
lines=0
while IFS='|' read -r name bad good; do
    lines=$((lines + 1))
    printf '%s\n%s\n' "$bad" "$good" >"$tmp/x.c"
    echo "$tmp/x.c" | read_files | apply_rules >"$tmp/found"
    grep -q "x.c:1: $name: " "$tmp/found" && test "$(wc -l <"$tmp/found")" = 1 ||
        { echo "$name: $bad $good"; cat "$tmp/found"; } >>"$tmp/log"
done <"$tmp/examples"
cut -d' ' -f1 "$tmp/rules" | sort -u >"$tmp/named"
cut -d'|' -f1 "$tmp/examples" | sort -u | cmp -s - "$tmp/named" ||
    echo "a rule has no example" >>"$tmp/log"
test "$lines" -gt 12 && test ! -s "$tmp/log"
verdict "every rule finds a bad sentence and no good one" $? "$tmp/log"

cat >"$tmp/x.c" <<'END'
int a = '"'; /* a string: "of which" */
char *b = "/* of nothing */ what is"; int c; /* keys,
    * of which
    * two */
END
printf '.TH X 1\n.PP\nKeeps\n.B what\nis read.\n.EX\nof which\n.EE\n' >"$tmp/x.1"
printf 'Text.\n\n    what is\n\nKeeps what\nis read, `of which`.\n' >"$tmp/x.md"
printf '#!/bin/sh\n# Keeps what\n# is read.\n#\n#     of which\n' >"$tmp/x.sh"
mkdir -p "$tmp/tools" || exit 99
cat >"$tmp/tools/x.c" <<'END'
    { "--of-which", "WHAT", "keep what "
                            "is read",
      OPT_FLAG, AT(keep) },
    return gg_error_set(err, GGUF_E_FORMAT, 0,
                        "'%s' is "
                        "no %s", name, "of which");
END
printf '%s\n' x.c x.1 x.md x.sh tools/x.c >"$tmp/list"
(cd "$tmp" && { read_files <"$tmp/list"; read_messages <"$tmp/list"; } |
    apply_rules) | cut -d: -f1-3 | LC_ALL=C sort >"$tmp/found"
printf '%s\n' 'tools/x.c:1: clause' 'tools/x.c:4: missing' \
    'tools/x.c:4: relative' 'x.1:3: clause' 'x.c:1: relative' \
    'x.c:2: relative' 'x.md:5: clause' 'x.sh:2: clause' |
    cmp -s - "$tmp/found"
verdict "sentences of every kind of file are found" $? "$tmp/found"

# -------------------------------------------------------------------- the tree ---
cd "$srcdir" || exit 99
list_files $whole >"$tmp/files"
read_files <"$tmp/files" | apply_rules >"$tmp/found"
read_messages <"$tmp/files" | apply_rules | sed 's,^,messages/,' >>"$tmp/found"

# An area is a folder of lib, tools or tests, "messages", or one of the other
# names. A line counts once, whatever number of rules find it.
${AWK} -F: '{
    n = split($1, part, "/")
    area = part[1] ~ /^(lib|tools|tests)$/ && n > 2 ? part[1] "/" part[2] : part[1]
    print area "\t" !(($1, $2) in seen) "\t" $0
    seen[$1, $2] = 1
}' "$tmp/found" | sort >"$tmp/areas"
${AWK} -F'\t' -v allowed="$tmp/allowed" '
function finish()
{
    if (n > most[area] + 0)
        printf "%s: %d sentences, allowed %d\n%s", area, n, most[area], text
    else if (n < most[area])
        print "# " area ": " most[area] " allowed, " n " there: lower the number" >"/dev/stderr"
    delete most[area]
}
BEGIN {
    while ((getline row <allowed) > 0) { split(row, x, " "); most[x[1]] = x[2] }
}
$1 != area { if (NR > 1) finish(); area = $1; n = 0; text = "" }
{ n += $2; text = text "  " $3 "\n" }
END {
    finish()
    for (area in most)
        if (area != "" && most[area] > 0)
            print "# " area ": " most[area] " allowed, none there" >"/dev/stderr"
}' "$tmp/areas" >"$tmp/log" 2>"$tmp/hints"
cat "$tmp/hints"
test ! -s "$tmp/log"
verdict "no area has more sentences to read twice than it may have" $? "$tmp/log"
done_testing
