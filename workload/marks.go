package workload

import (
	"hash/fnv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/quaymaster/quaymaster/workload/internal/yamldocument"
)

// mark is one value of a YAML document, with its position and content. Marks are in the order of
// the document, as nodes are; they are a tenth of the size of the parser's own tree, which is not
// kept.
type mark struct {
	name string // of a member
	text uint32 // hash of a scalar's text
	// line and column are the parser's, from 1.
	line, column uint32
	next         uint32 // the first mark after it and its content
	to           uint32 // the target of an alias
	kind         yaml.Kind
}

// mergeKey is the member with a value that is merged into its object.
const mergeKey = "<<"

// readMarks returns the marks of a document that yamldocument.ToJSON accepts; none if it cannot be
// parsed.
func readMarks(document string) []mark {
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(document), &root); err != nil || len(root.Content) == 0 {
		return nil
	}
	m := marker{anchors: map[*yaml.Node]uint32{}}
	m.add("", root.Content[0])
	return m.marks
}

type marker struct {
	marks   []mark
	anchors map[*yaml.Node]uint32
}

func (m *marker) add(name string, n *yaml.Node) {
	at := uint32(len(m.marks))
	m.marks = append(m.marks, mark{name: name, line: uint32(n.Line), column: uint32(n.Column), kind: n.Kind})
	switch n.Kind {
	case yaml.AliasNode:
		m.marks[at].to = m.anchors[n.Alias]
	case yaml.MappingNode:
		m.anchors[n] = at
		for i := 0; i+1 < len(n.Content); i += 2 {
			m.add(yamldocument.NameOf(n.Content[i]), n.Content[i+1])
		}
	case yaml.SequenceNode:
		m.anchors[n] = at
		for _, element := range n.Content {
			m.add("", element)
		}
	default:
		m.anchors[n] = at
		m.marks[at].text = sum(n.Value)
	}
	m.marks[at].next = uint32(len(m.marks))
}

func sum(text string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text)) // a hash never fails
	return h.Sum32()
}

// search finds the value at a path.
type search struct {
	marks []mark
	// want is the hash of the expected text; only texts are compared.
	want   uint32
	isText bool
	steps  int
}

// find returns the mark of the value at a path. Parsers differ about the precedence of merged
// members, so the one with the expected text is taken.
func find(marks []mark, path []string, want Value) (mark, bool) {
	if len(marks) == 0 {
		return mark{}, false
	}
	s := search{marks: marks, isText: want.IsText(), steps: maxSteps}
	if s.isText {
		s.want = sum(want.Text())
	}
	return s.follow(0, path)
}

func (s *search) follow(at uint32, path []string) (mark, bool) {
	s.steps--
	if s.steps < 0 {
		return mark{}, false
	}
	m := s.marks[at]
	if m.kind == yaml.AliasNode {
		return s.follow(m.to, path)
	}
	switch {
	case len(path) == 0:
		return m, !s.isText || m.kind == yaml.ScalarNode && m.text == s.want
	case m.kind == yaml.SequenceNode:
		return s.element(at, path)
	case m.kind == yaml.MappingNode:
		return s.member(at, path)
	}
	return mark{}, false
}

func (s *search) element(of uint32, path []string) (mark, bool) {
	wanted, ok := position(path[0], int(s.marks[of].next))
	if !ok {
		return mark{}, false
	}
	for at := of + 1; at < s.marks[of].next; at = s.marks[at].next {
		if wanted == 0 {
			return s.follow(at, path[1:])
		}
		wanted--
	}
	return mark{}, false
}

// member searches an object's own members first, then the merged ones.
func (s *search) member(of uint32, path []string) (mark, bool) {
	for at := of + 1; at < s.marks[of].next; at = s.marks[at].next {
		if s.marks[at].name == path[0] {
			if found, ok := s.follow(at, path[1:]); ok {
				return found, true
			}
		}
	}
	for at := of + 1; at < s.marks[of].next; at = s.marks[at].next {
		if s.marks[at].name == mergeKey {
			if found, ok := s.merged(at, path); ok {
				return found, true
			}
		}
	}
	return mark{}, false
}

// merged searches the target of a merge key: an object, or a list of them.
func (s *search) merged(at uint32, path []string) (mark, bool) {
	if s.marks[at].kind == yaml.AliasNode {
		at = s.marks[at].to
	}
	if s.marks[at].kind != yaml.SequenceNode {
		return s.follow(at, path)
	}
	for each := at + 1; each < s.marks[at].next; each = s.marks[each].next {
		if found, ok := s.follow(each, path); ok {
			return found, true
		}
	}
	return mark{}, false
}

// offset returns the offset of a mark's line and column in the text. The parser ends lines at
// more characters than editors do (YAML 1.1, section 4.2).
func offset(text string, m mark) int {
	at := 0
	for line := uint32(1); line < m.line && at < len(text); line++ {
		end := strings.IndexFunc(text[at:], isBreak)
		if end < 0 {
			return len(text)
		}
		at += end
		if strings.HasPrefix(text[at:], "\r\n") {
			at++
		}
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	for column := uint32(1); column < m.column && at < len(text); column++ {
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	return at
}

func isBreak(r rune) bool {
	return r == '\n' || r == '\r' || r == '\u0085' || r == '\u2028' || r == '\u2029'
}

// pastProperties returns the position of the value after its anchor and its tag, as long as it is
// on their line.
func pastProperties(text string, at int) int {
	begin := at
	for at < len(text) && (text[at] == '&' || text[at] == '!') {
		end := strings.IndexFunc(text[at:], unicode.IsSpace)
		if end < 0 {
			return begin
		}
		at += end + len(text[at+end:]) - len(strings.TrimLeft(text[at+end:], " \t"))
	}
	if at == len(text) || isBreak(rune(text[at])) || text[at] == '#' {
		return begin
	}
	return at
}
