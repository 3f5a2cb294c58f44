// SPDX-License-Identifier: MIT
// tokenizers.js - makes folders for tokenizers.t, and compares ids by the Rust
// library
//
//     node tokenizers.js make DIR          write a folder DIR/NAME of each kind
//     node tokenizers.js list              print the names
//     node tokenizers.js compare A B       A/tokenizer.json against B's
//
// The vocabulary has 256 bytes, and merges counted in the texts below (Sennrich
// et al., arXiv 1508.07909). Weights are zeros.
'use strict';
const fs = require('fs'), path = require('path');

const texts = [
    "Hello, world! It's what we'll do; they'VE said I'm here.",
    'The quick brown fox jumps over the lazy dog, 1234567890 times.',
    'Привет, мир! Москва — столица России.',
    'Γειά σου Κόσμε, καλημέρα σε όλους',
    '你好,世界。中文数字一二三 abc123',
    'こんにちは世界 カタカナ ひらがな 漢字',
    '안녕하세요 세계', 'مرحبا بالعالم ١٢٣', 'שלום עולם',
    'हिन्दी में नमस्ते दुनिया १२३', 'สวัสดีชาวโลก', 'Xin chào thế giới',
    'e\u0301te\u0301 n\u0303 \u1112\u1161\u11ab \u0928\u093c A\u030a',
    '😀😃 👩‍👩‍👧‍👦 🇩🇪 👍🏽 emoji 𝔘𝔫𝔦 𐍈',
    '  two  blanks\n\n   three\t\ttabs \r\n end   ', ' '.repeat(37),
    '\n'.repeat(9), '1 22 333 4444 55555 666666 3.14159 12,345 ½ Ⅻ',
    'def f(x):\n    return x**2  # square\n\n\nif x:\n\tprint(f(3))',
    'a'.repeat(300), '\u00a0nbsp\u2003em\u200bzw\u3000wide',
    '<|notatoken|> [INST] </s> <s> <unk>', '!!!???...---***(((]]]',
];
const special = ['<|end|>', '<|begin|>', '<|turn|>'];
const users = ['<two words>', '<tool>', '    '];
for (const s of special.concat(users))
    texts.push(s, 'a' + s + 'b', ' ' + s + ' ', s + s + 'x');

// GPT-2's letters for bytes.
const letter = [];
for (let b = 0, n = 0; b < 256; b++)
    letter[b] = String.fromCodePoint(
        (b >= 33 && b <= 126) || (b >= 161 && b !== 173 && b <= 255)
            ? b : 256 + n++);

function train(nMerges)
{
    const words = texts.join(' ').match(/ ?\p{L}+| ?\p{N}+|\s+|[^\s\p{L}\p{N}]+/gu)
        .map(w => Array.from(Buffer.from(w), b => letter[b]));
    const merges = [];
    while (merges.length < nMerges) {
        const count = new Map();
        for (const w of words)
            for (let i = 0; i + 1 < w.length; i++) {
                const k = w[i] + ' ' + w[i + 1];
                count.set(k, (count.get(k) || 0) + 1);
            }
        let best = null;
        for (const [k, c] of count)
            if (!best || c > count.get(best)) best = k;
        if (!best) break;
        merges.push(best);
        const [l, r] = best.split(' ');
        for (const w of words)
            for (let i = 0; i + 1 < w.length; i++)
                if (w[i] === l && w[i + 1] === r) w.splice(i, 2, l + r);
    }
    return merges;
}
const merges = train(400);

const contractions = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
const tiktoken = digits => contractions +
    '|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}' + digits +
    '| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+';
const bytes = regex => ({ type: 'ByteLevel', add_prefix_space: false,
                          trim_offsets: true, use_regex: regex });
const split = (...regex) => ({ type: 'Sequence', pretokenizers: [
    ...regex.map(r => ({ type: 'Split', pattern: { Regex: r },
                         behavior: 'Isolated', invert: false })),
    bytes(false)] });

// first: control tokens stand before the others; gap: ids without a token.
const kinds = {
    qwen2: { cut: split(tiktoken('')), norm: { type: 'NFC' }, first: true },
    llama3: { cut: split(tiktoken('{1,3}')), whole: true, bos: true },
    gpt2: { cut: bytes(true), bos: true, eos: true, gap: 7 },
    starcoder: { cut: { type: 'Sequence', pretokenizers: [
        { type: 'Digits', individual_digits: true }, bytes(true)] },
        eos: true, first: true },
    coder: { cut: split('[\\r\\n]', '\\s?\\p{L}+', '\\s?\\p{P}+',
                        '[一-龥ࠀ-一가-퟿]+', '\\p{N}'), bos: true },
};

function template(k, id)
{
    const token = s => ({ SpecialToken: { id: s, type_id: 0 } });
    const text = s => ({ Sequence: { id: s, type_id: 0 } });
    const begin = k.bos ? [token('<|begin|>')] : [];
    const end = k.eos ? [token('<|end|>')] : [];
    if (!k.bos && !k.eos) return null;
    const all = {};
    for (const t of begin.concat(end)) {
        const s = t.SpecialToken.id;
        all[s] = { id: s, ids: [id[s]], tokens: [s] };
    }
    return { type: 'TemplateProcessing', single: [...begin, text('A'), ...end],
             pair: [...begin, text('A'), ...end, text('B'), ...end],
             special_tokens: all };
}

function make(dir, k)
{
    const order = [...letter, ...merges.map(m => m.replace(' ', ''))];
    const id = {}, vocab = {};
    let n = 0;
    if (k.first) for (const s of special) id[s] = n++;
    for (const s of order) vocab[s] = n++;
    n += k.gap || 0;
    for (const s of k.first ? users : special.concat(users)) id[s] = n++;
    const added = Object.keys(id).sort((a, b) => id[a] - id[b]).map(s => ({
        id: id[s], content: s, single_word: false, lstrip: false,
        rstrip: false, normalized: false, special: special.includes(s) }));
    // The library gives new ids to tokens that the model does not have.
    if (k.first || k.gap) Object.assign(vocab, id);
    const width = 32, rows = n + 5;
    const json = (name, v) =>
        fs.writeFileSync(path.join(dir, name), JSON.stringify(v));
    fs.mkdirSync(dir);
    json('tokenizer.json', { version: '1.0', truncation: null, padding: null,
        added_tokens: added, normalizer: k.norm || null,
        pre_tokenizer: k.cut, post_processor: template(k, id),
        decoder: bytes(false), model: { type: 'BPE', dropout: null,
            unk_token: null, continuing_subword_prefix: null,
            end_of_word_suffix: null, fuse_unk: false, byte_fallback: false,
            ignore_merges: !!k.whole, vocab, merges } });
    json('tokenizer_config.json', { bos_token: '<|begin|>',
        eos_token: '<|end|>', tokenizer_class: 'PreTrainedTokenizerFast' });
    json('config.json', { architectures: ['LlamaForCausalLM'],
        vocab_size: rows, hidden_size: width, intermediate_size: width,
        num_hidden_layers: 1, num_attention_heads: 2, num_key_value_heads: 2,
        max_position_embeddings: 256, rms_norm_eps: 1e-5,
        tie_word_embeddings: true });
    const shapes = { 'model.embed_tokens': [rows, width], 'model.norm': [width] };
    for (const s of ['input_layernorm', 'post_attention_layernorm'])
        shapes['model.layers.0.' + s] = [width];
    for (const s of ['self_attn.q_proj', 'self_attn.k_proj', 'self_attn.v_proj',
                     'self_attn.o_proj', 'mlp.gate_proj', 'mlp.up_proj',
                     'mlp.down_proj'])
        shapes['model.layers.0.' + s] = [width, width];
    const head = {};
    let end = 0;
    for (const s in shapes) {
        const size = 2 * shapes[s].reduce((a, b) => a * b);
        head[s + '.weight'] = { dtype: 'F16', shape: shapes[s],
                                data_offsets: [end, end += size] };
    }
    const text = Buffer.from(JSON.stringify(head)), size = Buffer.alloc(8);
    size.writeBigUInt64LE(BigInt(text.length));
    fs.writeFileSync(path.join(dir, 'model.safetensors'),
                     Buffer.concat([size, text, Buffer.alloc(end)]));
}

async function compare(a, b)
{
    const { Tokenizer } = require('tokenizers');
    const [x, y] = [a, b].map(d =>
        Tokenizer.fromFile(path.join(d, 'tokenizer.json')));
    let wrong = 0;
    for (const addSpecialTokens of [false, true])
        for (const t of texts) {
            const [p, q] = await Promise.all([x, y].map(async z =>
                (await z.encode(t, null, { addSpecialTokens })).getIds().join()));
            if (p !== q && wrong++ < 5)
                console.log(`${JSON.stringify(t)}: ${p}, now ${q}`);
        }
    process.exitCode = wrong ? 1 : 0;
}

const [what, a, b] = process.argv.slice(2);
if (what === 'make')
    for (const name in kinds) make(path.join(a, name), kinds[name]);
else if (what === 'list')
    console.log(Object.keys(kinds).join('\n'));
else if (what === 'compare')
    compare(a, b);
