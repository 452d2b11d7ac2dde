package file

import (
	"encoding"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"sublet/vnet"
)

// maxScalar bounds one value, in bytes, so that an error that quotes it stays
// one readable line. Texts of files, which no error quotes, have a bound of their
// own.
const maxScalar = 1000

// decode fills a form, strictly: unknown, repeated, missing and empty fields
// are errors, and so are anchors and aliases, which could make a small file
// grow without end.
func (d *document) decode(form any) error {
	d.note(d.value(d.root, "document", reflect.ValueOf(form).Elem()))
	return d.problem()
}

// value decodes n, called name in errors, into v.
func (d *document) value(n *yaml.Node, name string, v reflect.Value) error {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		return d.fail(n, "%s uses an anchor or alias, which is not accepted: write the value out", name)
	}
	most := maxScalar
	if v.Type() == reflect.TypeFor[*content]() {
		most = vnet.MaxFile
	}
	if len(n.Value) > most {
		return d.fail(n, "%s has %d bytes, more than %d: shorten it", name, len(n.Value), most)
	}
	if n.Kind == 0 || n.ShortTag() == "!!null" {
		return d.fail(n, "%s is empty: state a value or leave it out", name)
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	if c, ok := v.Addr().Interface().(chooser); ok {
		if short := c.short(n); short != nil {
			v = reflect.ValueOf(short).Elem()
		}
	}
	if text, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return d.text(n, name, text)
	}
	switch v.Kind() {
	case reflect.Struct:
		return d.mapping(n, name, v)
	case reflect.Map:
		return d.table(n, name, v)
	case reflect.Slice, reflect.Array:
		return d.sequence(n, name, v)
	default:
		return d.scalar(n, name, v)
	}
}

// chooser is a form that may be written shorter, as a part of itself: short
// points to the part that n states; nil: n states all of it.
type chooser interface{ short(n *yaml.Node) any }

func (d *document) text(n *yaml.Node, name string, text encoding.TextUnmarshaler) error {
	if n.Kind != yaml.ScalarNode {
		return d.fail(n, "%s is a %s: write a single value%s", name, kindOf(n), example(text))
	}
	if err := text.UnmarshalText([]byte(n.Value)); err != nil {
		return d.fail(n, "%s: %v", name, err)
	}
	return nil
}

// example of a value that is often written as something else; "" for others.
func example(text encoding.TextUnmarshaler) string {
	if _, ok := text.(*rate); ok {
		return " such as 10Mbit; a minimum and a maximum are fields of their own, min: 10Mbit, max: 20Mbit"
	}
	return ""
}

func (d *document) scalar(n *yaml.Node, name string, v reflect.Value) error {
	if n.Kind != yaml.ScalarNode {
		return d.fail(n, "%s is a %s: write a single value", name, kindOf(n))
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(n.Value)
	case reflect.Bool:
		if n.ShortTag() != "!!bool" {
			return d.fail(n, "%s: %q is neither true nor false: write one of them", name, n.Value)
		}
		v.SetBool(strings.EqualFold(n.Value, "true"))
	case reflect.Int:
		i, err := strconv.Atoi(n.Value)
		if err != nil {
			return d.fail(n, "%s: %q is not a whole number: write one such as 1500", name, n.Value)
		}
		v.SetInt(int64(i))
	case reflect.Uint8, reflect.Uint16:
		i, err := strconv.ParseUint(n.Value, 10, v.Type().Bits())
		if err != nil {
			return d.fail(n, "%s: %q is not a whole number from 0 to %d", name, n.Value, uint64(1)<<v.Type().Bits()-1)
		}
		v.SetUint(i)
	}
	return nil
}

func (d *document) sequence(n *yaml.Node, name string, v reflect.Value) error {
	if n.Kind != yaml.SequenceNode {
		return d.fail(n, "%s is a %s: write a list", name, kindOf(n))
	}
	if v.Kind() == reflect.Slice {
		v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	}
	if v.Len() != len(n.Content) {
		return d.fail(n, "%s lists %d values: write exactly %d", name, len(n.Content), v.Len())
	}
	for i, element := range n.Content {
		d.note(d.value(element, name+"["+strconv.Itoa(i)+"]", v.Index(i)))
		if d.full() {
			break
		}
	}
	return nil
}

// table decodes a mapping whose keys are the writer's.
func (d *document) table(n *yaml.Node, name string, v reflect.Value) error {
	v.Set(reflect.MakeMap(v.Type()))
	return d.entries(n, name, func(k, element *yaml.Node) error {
		value := reflect.New(v.Type().Elem()).Elem()
		if err := d.value(element, name+"."+k.Value, value); err != nil {
			return err
		}
		v.SetMapIndex(reflect.ValueOf(k.Value), value)
		return nil
	})
}

// mapping decodes a mapping whose keys are the fields of a form struct.
func (d *document) mapping(n *yaml.Node, name string, v reflect.Value) error {
	fields := fieldsOf(v.Type())
	seen, odd := make(map[string]bool, len(fields)), false
	err := d.entries(n, name, func(k, element *yaml.Node) error {
		f, ok := find(fields, k.Value)
		if !ok {
			odd = true // perhaps the one that would be missing
			return d.unknown(k, name, fields)
		}
		seen[k.Value] = true
		return d.value(element, k.Value, v.FieldByIndex(f.index))
	})
	if err != nil || odd {
		return err
	}
	for _, f := range fields {
		if f.required && !seen[f.name] && !d.full() {
			return d.fail(n, "%s has no %s: add %s: %s", name, f.name, f.name, lacking(v, f.name))
		}
	}
	return nil
}

// lacker is a form that knows what is to be written where a field is missing.
type lacker interface{ lacks(field string) string }

func lacking(v reflect.Value, field string) string {
	if f, ok := v.Interface().(lacker); ok {
		return f.lacks(field)
	}
	return "..."
}

// entries calls do for each pair of a mapping; a repeated key is an error.
func (d *document) entries(n *yaml.Node, name string, do func(k, element *yaml.Node) error) error {
	if n.Kind != yaml.MappingNode {
		return d.fail(n, "%s is a %s: write fields as name: value", name, kindOf(n))
	}
	lines := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if k.Kind != yaml.ScalarNode || k.Anchor != "" || len(k.Value) > maxScalar {
			return d.fail(k, "a key of %s is no plain word: write fields as name: value", name)
		}
		if first, ok := lines[k.Value]; ok {
			d.note(d.fail(k, "%s states %q again, first on line %d: keep one", name, k.Value, first))
			continue
		}
		lines[k.Value] = k.Line
		d.note(do(k, n.Content[i+1]))
		if d.full() {
			break
		}
	}
	return nil
}

func (d *document) unknown(k *yaml.Node, name string, fields []field) error {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	if near := vnet.Nearest(k.Value, names); near != "" {
		return d.fail(k, "%s has no field %q: did you mean %q?", name, k.Value, near)
	}
	if instead := foreign(k.Value); instead != "" {
		return d.fail(k, "%s has no field %q: %s", name, k.Value, instead)
	}
	return d.fail(k, "%s has no field %q: its fields are %s", name, k.Value, strings.Join(names, ", "))
}

func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "mapping"
	case yaml.SequenceNode:
		return "list"
	}
	return "single value"
}
