package file

import (
	"reflect"
	"strings"
)

// field is one field of a form struct as its yaml tag states it: a field
// without omitempty is required, in the decoder as in the schema.
type field struct {
	name     string
	index    []int
	required bool
}

// fieldsOf lists the fields of a form struct, inlined ones in place.
func fieldsOf(t reflect.Type) []field {
	var fields []field
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			for _, inner := range fieldsOf(f.Type) {
				inner.index = append([]int{i}, inner.index...)
				fields = append(fields, inner)
			}
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		fields = append(fields, field{name: name, index: []int{i}, required: options != "omitempty"})
	}
	return fields
}

func find(fields []field, name string) (field, bool) {
	for _, f := range fields {
		if f.name == name {
			return f, true
		}
	}
	return field{}, false
}
