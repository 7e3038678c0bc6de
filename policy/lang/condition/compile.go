package condition

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

type compiler struct {
	engine *jmespath.Engine
	blocks []block
	count  int
	use    use
}

func fail(path string, format string, args ...any) error {
	return &variable.CompileError{Path: path, Err: fmt.Errorf(format, args...)}
}

// read reads the whole value.
func (c *compiler) read(value any) error {
	switch v := value.(type) {
	case nil:
		return nil
	case map[string]any:
		return c.readBlock(v, "")
	case []any:
		var flat block
		for i, item := range v {
			path := "/" + strconv.Itoa(i)
			object, ok := item.(map[string]any)
			if !ok {
				return fail(path, "want a condition or a block of any and all")
			}
			if isBlock(object) {
				if err := c.readBlock(object, path); err != nil {
					return err
				}
				continue
			}
			one, err := c.readCondition(object, path)
			if err != nil {
				return err
			}
			flat.all = append(flat.all, one)
		}
		if len(flat.all) > 0 {
			c.blocks = append(c.blocks, flat)
		}
		return nil
	}
	return fail("", "want a block of any and all, or a list")
}

func isBlock(object map[string]any) bool {
	_, hasAny := object["any"]
	_, hasAll := object["all"]
	return hasAny || hasAll
}

func (c *compiler) readBlock(object map[string]any, path string) error {
	var b block
	for _, key := range slices.Sorted(maps.Keys(object)) {
		place := path + "/" + key
		if key != "any" && key != "all" {
			return fail(place, "unknown field: want any or all")
		}
		if object[key] == nil {
			continue
		}
		items, ok := object[key].([]any)
		if !ok {
			return fail(place, "want a list of conditions")
		}
		read, err := c.readList(items, place)
		if err != nil {
			return err
		}
		if key == "any" {
			b.any, b.hasAny = read, true
		} else {
			b.all, b.hasAll = read, true
		}
	}
	c.blocks = append(c.blocks, b)
	return nil
}

func (c *compiler) readList(items []any, path string) ([]condition, error) {
	var conditions []condition
	for i, item := range items {
		place := path + "/" + strconv.Itoa(i)
		object, ok := item.(map[string]any)
		if !ok {
			return nil, fail(place, "want a condition with key, operator and value")
		}
		one, err := c.readCondition(object, place)
		if err != nil {
			return nil, err
		}
		conditions = append(conditions, one)
	}
	return conditions, nil
}

func (c *compiler) readCondition(object map[string]any, path string) (condition, error) {
	c.count++
	if c.count > maxConditions {
		return condition{}, fail(path, "the number of conditions %w of %d", jmespath.ErrTooLarge, maxConditions)
	}
	one := condition{path: path}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		switch key {
		case "key", "operator", "value", "message":
		default:
			return one, fail(path+"/"+key, "unknown field: want key, operator, value and message")
		}
	}
	if _, ok := object["key"]; !ok {
		return one, fail(path, "key is missing")
	}
	name, ok := object["operator"].(string)
	if !ok {
		return one, fail(path+"/operator", "want the name of an operator, such as Equals")
	}
	one.name = name
	one.operator = operatorOf(name)
	if one.operator == nil {
		return one, fail(path+"/operator", "unknown operator %q: want one of %s", name, strings.Join(Operators(), ", "))
	}
	if _, ok := object["message"].(string); !ok && object["message"] != nil {
		return one, fail(path+"/message", "want a string")
	}
	if _, ok := object["value"]; !ok { // an order would never hold, and a negation nearly always
		return one, fail(path, "value is missing: write the value that %s compares with the key", name)
	}
	one.source, _ = object["key"].(string)
	var errs [3]error
	one.key, errs[0] = variable.CompileAt(c.engine, object["key"], path+"/key")
	one.value, errs[1] = variable.CompileAt(c.engine, object["value"], path+"/value")
	one.spelledKey, one.spelled = spellingOf(c.engine, object["key"]), spellingOf(c.engine, object["value"])
	one.message, errs[2] = variable.CompileAt(c.engine, object["message"], path+"/message")
	if err := errors.Join(errs[:]...); err != nil {
		return one, err
	}
	one.foreign, one.use = one.key.Foreign() || one.value.Foreign(), c.use
	return one, one.orderable(path)
}
