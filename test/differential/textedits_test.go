package differential

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"math/rand/v2"
	"slices"
)

// textEdits change bytes, whatever they are.
func textEdits() map[string]func(*rand.Rand, []byte) []byte {
	return map[string]func(*rand.Rand, []byte) []byte{
		"bit":              flipBit,
		"cut":              truncate,
		"nothing":          func(*rand.Rand, []byte) []byte { return []byte{} },
		"byte after":       func(_ *rand.Rand, b []byte) []byte { return append(b, 0) },
		"line after":       func(_ *rand.Rand, b []byte) []byte { return append(b, '\n') },
		"blank before":     func(_ *rand.Rand, b []byte) []byte { return append([]byte(" "), b...) },
		"byte order mark":  func(_ *rand.Rand, b []byte) []byte { return append([]byte("\xef\xbb\xbf"), b...) },
		"twice":            func(_ *rand.Rand, b []byte) []byte { return append(b, b...) },
		"brace after":      func(_ *rand.Rand, b []byte) []byte { return append(b, '}') },
		"object after":     func(_ *rand.Rand, b []byte) []byte { return append(b, "{}"...) },
		"carriage returns": func(_ *rand.Rand, b []byte) []byte { return bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n")) },
		"blanks between":   func(_ *rand.Rand, b []byte) []byte { return bytes.ReplaceAll(b, []byte(","), []byte(" ,\n ")) },
	}
}

func flipBit(random *rand.Rand, b []byte) []byte {
	if len(b) > 0 {
		b[random.IntN(len(b))] ^= 1 << random.IntN(8)
	}
	return b
}

func flipByte(random *rand.Rand, b []byte) []byte {
	if len(b) == 0 {
		return []byte("x")
	}
	const letters = "abcdef0123456789"
	i := random.IntN(len(b))
	if c := letters[random.IntN(len(letters))]; b[i] != c {
		b[i] = c
		return b
	}
	b[i] = 'z'
	return b
}

func swapCase(_ *rand.Rand, b []byte) []byte {
	if upper := bytes.ToUpper(b); !bytes.Equal(upper, b) {
		return upper
	}
	return bytes.ToLower(b)
}

func truncate(random *rand.Rand, b []byte) []byte {
	if len(b) == 0 {
		return b
	}
	return b[:random.IntN(len(b))]
}

// pemEdits change certificates, as a list.
func pemEdits() map[string]func(random *rand.Rand, mine, theirs []*pem.Block) []*pem.Block {
	return map[string]func(*rand.Rand, []*pem.Block, []*pem.Block) []*pem.Block{
		"a bit of a certificate": func(random *rand.Rand, mine, _ []*pem.Block) []*pem.Block {
			one := pick(random, mine)
			one.Bytes = flipBit(random, one.Bytes)
			return mine
		},
		"another's certificates":        func(_ *rand.Rand, _, theirs []*pem.Block) []*pem.Block { return theirs },
		"another's certificates before": func(_ *rand.Rand, mine, theirs []*pem.Block) []*pem.Block { return append(theirs, mine...) },
		"another's certificates after":  func(_ *rand.Rand, mine, theirs []*pem.Block) []*pem.Block { return append(mine, theirs...) },
		"certificates twice":            func(_ *rand.Rand, mine, _ []*pem.Block) []*pem.Block { return append(mine, mine...) },
		"certificates the other way": func(_ *rand.Rand, mine, _ []*pem.Block) []*pem.Block {
			slices.Reverse(mine)
			return mine
		},
		"bytes after a certificate": func(random *rand.Rand, mine, _ []*pem.Block) []*pem.Block {
			one := pick(random, mine)
			one.Bytes = append(one.Bytes, 0)
			return mine
		},
		"a certificate of another type": func(random *rand.Rand, mine, _ []*pem.Block) []*pem.Block {
			pick(random, mine).Type = "TRUSTED CERTIFICATE"
			return mine
		},
		"a certificate with headers": func(random *rand.Rand, mine, _ []*pem.Block) []*pem.Block {
			pick(random, mine).Headers = map[string]string{"Proc-Type": "4,CLEAR"}
			return mine
		},
	}
}

func blocks(text []byte) []*pem.Block {
	var all []*pem.Block
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		all = append(all, block)
	}
	return all
}

func encodeBlocks(all []*pem.Block) []byte {
	var b bytes.Buffer
	for _, block := range all {
		if err := pem.Encode(&b, block); err != nil {
			panic(fmt.Sprintf("differential: %v", err)) // no header holds a colon
		}
	}
	return b.Bytes()
}
