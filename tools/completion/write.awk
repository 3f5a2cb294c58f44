# SPDX-License-Identifier: MIT
# write.awk - the completion of a tool, for bash or zsh, from what options.sh
# prints: awk -v shell=bash -v tool=gguf-info -v types="..." -f write.awk
#
# types: words that an operand after the first may be.
BEGIN {
    FS = "\t"
    q = "\047"
    f = "_" tool
    gsub(/-/, "_", f)
}

# Those after '=' alone, where the argument may be left out.
{
    maybe = sub(/\?$/, "", $3)
    n = split($1, name, " ")
    for (i = 1; i <= n; i++)
        all = all (all == "" ? "" : " ") name[i]
    if (shell == "bash" && $3 != "flag")
        bash_row()
    if (shell == "zsh")
        zsh_row()
}

# ---- bash ----

function bash_row(    k, any)
{
    any = ""
    for (k = 1; k <= n; k++)
        any = any (any == "" ? "" : " | ") (maybe ? name[k] "=" : name[k])
    # an argument that must be there may follow '=', too
    if (!maybe)
        for (k = 1; k <= n; k++)
            any = any " | " name[k] "="
    cases = cases "    " any ")\n"
    if ($3 == "words")
        cases = cases "        COMPREPLY=($(compgen -W " q $4 q " -- \"$cur\"))\n"
    else if ($3 == "file")
        cases = cases "        compopt -o default 2>/dev/null\n"
    cases = cases "        return\n        ;;\n"
}

function bash_end()
{
    print "# Completion of " tool "(1) in bash. Generated: tools/completion/write.awk"
    print f "()"
    print "{"
    print "    local cur=${COMP_WORDS[COMP_CWORD]} opt=${COMP_WORDS[COMP_CWORD - 1]}"
    print "    COMPREPLY=()"
    print "    # --name=value is three words, or one"
    print "    case $cur in"
    print "    =) opt=$opt= cur= ;;"
    print "    --*=*) opt=${cur%%=*}= cur=${cur#*=} ;;"
    print "    *) test \"$opt\" != = || opt=${COMP_WORDS[COMP_CWORD - 2]}= ;;"
    print "    esac"
    print "    case $opt in"
    printf "%s", cases
    print "    esac"
    print "    case $cur in"
    print "    -*)"
    print "        COMPREPLY=($(compgen -W " q all q " -- \"$cur\"))"
    print "        return"
    print "        ;;"
    print "    esac"
    if (types != "") {
        print "    if ((COMP_CWORD > 1)) && test -n \"$cur\"; then"
        print "        COMPREPLY=($(compgen -W " q types q " -- \"${cur^^}\"))"
        print "    fi"
    }
    print "    compopt -o default 2>/dev/null"
    print "}"
    print "complete -F " f " " tool
}

# ---- zsh ----

# Inside [ ] of _arguments, and inside single quotes.
function zsh_text(s)
{
    sub(/[.;] .*/, "", s)
    gsub(/\\/, "\\\\&", s)
    gsub(/\[/, "\\\\&", s)
    gsub(/\]/, "\\\\&", s)
    gsub(/:/, "\\\\&", s)
    gsub(q, q "\\" q q, s)
    return s
}

function zsh_row(    k, text, after, how, others)
{
    text = "[" zsh_text($5) "]"
    after = ""
    if ($3 != "flag") {
        after = (maybe ? "::" : ":") zsh_text($2)
        if ($3 == "words")
            after = after ":(" $4 ")"
        else
            after = after ($3 == "file" ? ":_files" : ": ")
    }
    others = n > 1 && $1 !~ /^--(lora|set|model)/ ? "(" $1 ")" : ""
    for (k = 1; k <= n; k++) {
        how = ""
        if ($3 != "flag" && name[k] ~ /^--/)
            how = maybe ? "=-" : "="
        else if ($3 != "flag" && length(name[k]) == 2)
            how = "+"
        zsh = zsh "    " q (again($5) ? "*" : others) name[k] how text after q \
            " \\\n"
    }
}

function again(help)
{
    return help ~ /given (again|several)|in the order given/ || \
        $1 ~ /--(set|rename|delete|special|lora|limit|override)/
}

function zsh_end()
{
    print "#compdef " tool
    print "# Completion of " tool "(1) in zsh. Generated: tools/completion/write.awk"
    print "_arguments \\"
    printf "%s", zsh
    if (types != "")
        print "    '1:file:_files' '*:file or type:{ _alternative \"files:file:_files\" \"types:type:(" types ")\" }'"
    else
        print "    '*:file:_files'"
}

END {
    if (all == "")
        exit 1
    if (shell == "bash")
        bash_end()
    else
        zsh_end()
}
