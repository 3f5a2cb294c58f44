# SPDX-License-Identifier: MIT
# edit.sh - for tests of gguf-edit: a model, and facts of files. Source it
# after lib.sh.
edit=$bin/gguf-edit
info=$bin/gguf-info
m=$tmp/model.gguf
"$mkmodel" "$m" n=6 || exit 99

key() # file, key: its value; "absent"
{
    "$info" --key "$2" "$1" 2>/dev/null || echo absent
}

tensors() # file: names, types, shapes and checksums of its tensors
{
    "$info" --hash --tensors --json "$1" |
        sed -n '/"tensors": \[/,$p' | sed '/"offset"/d'
}
tensors "$m" >"$tmp/tensors"

same_tensors() # file
{
    tensors "$1" | cmp - "$tmp/tensors"
}

fresh()
{
    rm -f "$tmp/f.gguf"
    cp "$m" "$tmp/f.gguf"
}
w=$tmp/f.gguf
