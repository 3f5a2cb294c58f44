# SPDX-License-Identifier: MIT
# abi.awk - the interface of a library as lines of text
#
# Reads the output of abidw (libabigail, one element a line) and prints a line
# for each public function, enumerator, member of a struct and function type:
#
#     function NAME: RESULT (PARAMETERS)
#     enum NAME: ENUMERATOR VALUE
#     struct NAME: OFFSET TYPE MEMBER        offset in bytes
#     size NAME: BYTES                       of a struct without struct_size
#     typedef NAME: TYPE
#
# A line depends on names and types alone, so that the lines of two builds can
# be compared with diff. The caller sorts them.

function attr(name,    re) {
    re = " " name "='[^']*'"
    if (!match($0, re)) return ""
    return substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 4)
}

# A type in C's words: typedefs, structs and enums by their names.
function type(id,    s, n, i, p) {
    if (id == "" || !(id in kind)) return "void"
    if (kind[id] == "named") return name_of[id]
    if (kind[id] == "pointer") {
        s = type(of[id])
        return s (s ~ /\*$/ ? "*" : " *")
    }
    if (kind[id] == "qualified") {
        s = type(of[id])
        return s ~ /\*$/ ? s quals[id] : quals[id] " " s
    }
    if (kind[id] == "array") return type(of[id]) dims[id]
    if (kind[id] == "function") return signature(id)
    return "?"
}
function signature(id,    s, i) {
    s = type(result[id]) " ("
    for (i = 1; i <= n_params[id]; i++)
        s = s (i > 1 ? ", " : "") type(param[id, i])
    return s ")"
}

/<type-decl |<typedef-decl |<class-decl |<union-decl |<enum-decl / {
    id = attr("id")
    n = attr("name")
    if ($0 ~ /<class-decl/) n = "struct " n
    if ($0 ~ /<union-decl/) n = "union " n
    if ($0 ~ /<enum-decl/) n = "enum " n
    kind[id] = "named"
    name_of[id] = n
    if ($0 ~ /<typedef-decl/) typedef_of[attr("name")] = attr("type-id")
    if ($0 ~ /<class-decl|<enum-decl/) {
        inside = n
        sub(/^[a-z]* /, "", inside)
        if ($0 ~ /size-in-bits/) size[inside] = attr("size-in-bits") / 8
        if ($0 ~ /\/>$/) inside = ""
    }
}
/<\/class-decl>|<\/enum-decl>/ { inside = "" }
/<pointer-type-def / { kind[attr("id")] = "pointer"; of[attr("id")] = attr("type-id") }
/<qualified-type-def / {
    id = attr("id")
    kind[id] = "qualified"
    of[id] = attr("type-id")
    quals[id] = attr("const") == "yes" ? "const" : \
        attr("volatile") == "yes" ? "volatile" : "restrict"
}
/<array-type-def / { array = attr("id"); kind[array] = "array"; of[array] = attr("type-id"); dims[array] = "" }
/<subrange / { dims[array] = dims[array] "[" attr("length") "]" }
/<enumerator / && inside ~ /^gguf_/ { print "enum " inside ": " attr("name") " " attr("value") }
/<data-member / { offset = attr("layout-offset-in-bits") / 8; member = 1 }
/<\/data-member>/ { member = 0 }
/<var-decl / && member && inside ~ /^gguf_/ && !((inside, attr("name")) in seen) {
    seen[inside, attr("name")] = 1
    n_members++
    m_struct[n_members] = inside
    m_offset[n_members] = offset
    m_type[n_members] = attr("type-id")
    m_name[n_members] = attr("name")
    if (attr("name") == "struct_size") sized[inside] = 1
}
/<elf-symbol / { symbol[attr("name")] = 1 }
/<function-type / { fn = attr("id"); kind[fn] = "function"; n_params[fn] = 0 }
/<function-decl / {
    fn = "decl " attr("name")
    n_params[fn] = 0
    if (attr("name") in symbol) public[attr("name")] = fn
}
/<parameter / {
    param[fn, ++n_params[fn]] = attr("is-variadic") == "yes" ? "..." : attr("type-id")
    if (attr("is-variadic") == "yes") { kind["..."] = "named"; name_of["..."] = "..." }
}
/<return / { result[fn] = attr("type-id") }

END {
    for (f in symbol)
        print "function " f ": " (f in public ? signature(public[f]) : "?")
    for (i = 1; i <= n_members; i++)
        print "struct " m_struct[i] ": " m_offset[i] " " type(m_type[i]) " " m_name[i]
    for (i = 1; i <= n_members; i++)
        if (!(m_struct[i] in sized)) print "size " m_struct[i] ": " size[m_struct[i]]
    for (t in typedef_of)
        if (t ~ /^gguf_/) print "typedef " t ": " type(typedef_of[t])
}
