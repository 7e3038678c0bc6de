package jmespath

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	jp "github.com/kyverno/go-jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath/internal/function"
)

// bind returns the tree with the holes' values in place of their markers. It charges for the
// values that it writes, because one value may fill many holes.
func (q *Query) bind(node jp.ASTNode, holes []any, m *meter) (jp.ASTNode, error) {
	switch value := node.Value.(type) {
	case string:
		if strings.ContainsRune(value, markOpen) {
			bound, err := q.bindMarked(node, value, holes, m)
			if err != nil || bound.NodeType != jp.ASTKeyValPair {
				return bound, err
			}
			node = bound
		}
	case int:
		if node.NodeType == jp.ASTIndex && value >= indexBase {
			return q.bindIndex(value-indexBase, holes)
		}
	}
	if operands, ok := node.Value.(*either); ok {
		return q.bindEither(node, operands, holes, m)
	}
	if len(node.Children) == 0 {
		return node, nil
	}
	children := make([]jp.ASTNode, len(node.Children))
	for i, child := range node.Children {
		bound, err := q.bind(child, holes, m)
		if err != nil {
			return jp.ASTNode{}, err
		}
		children[i] = bound
	}
	node.Children = children
	return node, nil
}

func (q *Query) bindEither(node jp.ASTNode, operands *either, holes []any, m *meter) (jp.ASTNode, error) {
	first, err := q.bind(operands.first, holes, m)
	if err != nil {
		return node, err
	}
	second, err := q.bind(operands.second, holes, m)
	node.Value = &either{or: operands.or, first: first, second: second}
	return node, err
}

func (q *Query) bindIndex(n int, holes []any) (jp.ASTNode, error) {
	if n >= len(q.slots) {
		return jp.ASTNode{}, errors.New("an index is out of range")
	}
	value := holes[q.slots[n].hole]
	index, err := strconv.Atoi(Text(value))
	if err != nil {
		return jp.ASTNode{}, fmt.Errorf("the index %q is not a whole number", function.Shorten(Text(value)))
	}
	return jp.ASTNode{NodeType: jp.ASTIndex, Value: index}, nil
}

// bindMarked fills in the markers in a literal, a key or a name.
func (q *Query) bindMarked(node jp.ASTNode, marked string, holes []any, m *meter) (jp.ASTNode, error) {
	var text strings.Builder
	path := false
	for marked != "" {
		before, rest, found := strings.Cut(marked, string(markOpen))
		text.WriteString(before)
		if !found {
			break
		}
		number, after, _ := strings.Cut(rest, string(markClose))
		n, err := strconv.Atoi(number)
		if err != nil || n >= len(q.slots) {
			return jp.ASTNode{}, errors.New("a marker is broken")
		}
		s := q.slots[n]
		switch s.kind {
		case slotValue:
			node.Value = holes[s.hole]
			return node, nil
		case slotJSON:
			node.Value, err = bindJSON(s, holes, m)
			return node, err
		case slotPath:
			path = true
		}
		if err := m.walk(holes[s.hole]); err != nil {
			return jp.ASTNode{}, err
		}
		text.WriteString(Text(holes[s.hole]))
		if text.Len() > function.MaxText {
			return jp.ASTNode{}, function.TooLarge("a string", text.Len(), function.MaxText)
		}
		marked = after
	}
	if path && isPlainPath(text.String()) {
		return parse(text.String())
	}
	node.Value = text.String()
	return node, nil
}

// isPlainPath reports whether a value, where a name is expected, means more
// than one key: names, dots and indices, and no function, quote or filter.
func isPlainPath(s string) bool {
	if len(s) > maxPath || !strings.ContainsAny(s, ".[") {
		return false
	}
	for _, part := range strings.Split(strings.ReplaceAll(s, "[", ".["), ".") {
		if index, ok := strings.CutPrefix(part, "["); ok {
			index, ok = strings.CutSuffix(index, "]")
			if _, err := strconv.ParseUint(index, 10, 16); !ok || err != nil {
				return false
			}
			continue
		}
		if part == "" || part[0] >= '0' && part[0] <= '9' || strings.ContainsFunc(part, func(r rune) bool { return !isName(r) }) {
			return false
		}
	}
	return true
}

// bindJSON builds the value of a JSON literal with holes. A hole inside a JSON
// string is text in it. Outside, a string is taken as the JSON that it holds,
// as Kyverno does, and as a plain string where it holds none and is alone.
func bindJSON(s slot, holes []any, m *meter) (any, error) {
	if len(s.pieces) == 3 && strings.TrimSpace(s.pieces[0].Text+s.pieces[2].Text) == "" {
		text, ok := holes[s.hole].(string)
		if !ok {
			return holes[s.hole], nil
		}
		return fromJSON(text, m)
	}
	var out strings.Builder
	hole, inString := s.hole, false
	for _, piece := range s.pieces {
		if !piece.Hole {
			out.WriteString(piece.Text)
			inString = endsInString(piece.Text, inString)
			continue
		}
		text, isText := holes[hole].(string)
		if err := m.walk(holes[hole]); err != nil {
			return nil, err
		}
		hole++
		switch {
		case inString:
			quoted := function.Encode(Text(holes[hole-1]))
			out.WriteString(quoted[1 : len(quoted)-1])
		case isText:
			out.WriteString(text)
		default:
			out.WriteString(function.Encode(holes[hole-1]))
		}
		if out.Len() > function.MaxText {
			return nil, function.TooLarge("a literal", out.Len(), function.MaxText)
		}
	}
	return fromJSON(out.String(), m)
}

// endsInString reports whether a JSON text, which starts inside a string or
// not, ends inside one.
func endsInString(text string, inString bool) bool {
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\' && inString:
			i++
		case text[i] == '"':
			inString = !inString
		}
	}
	return inString
}

func fromJSON(text string, m *meter) (any, error) {
	if len(text) > function.MaxText {
		return nil, function.TooLarge("a literal", len(text), function.MaxText)
	}
	if err := m.take(len(text) * parsedCost); err != nil {
		return nil, err
	}
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return nil, fmt.Errorf("the literal %q is not JSON: %w", function.Shorten(text), brief(err))
	}
	return value, nil
}

// Text returns a value as it reads in the middle of a string: strings as they are, anything else as
// JSON.
func Text(value any) string { return function.Text(value) }

// same reports whether Normalize left a value as it was.
func same(a, b any) bool {
	switch a.(type) {
	case nil, bool, string, float64:
		return true
	case []any, map[string]any:
		return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
	}
	return false
}
