package scenario

import (
	"encoding"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// assign sets the field of a path such as virtual_switches[0].count.
func assign(f *form, path, value string) error {
	v := reflect.ValueOf(f).Elem()
	for _, step := range strings.Split(path, ".") {
		name, index, indexed := strings.Cut(step, "[")
		next, err := field(v, name)
		if err != nil {
			return err
		}
		v = settle(next)
		if !indexed {
			continue
		}
		i, err := strconv.Atoi(strings.TrimSuffix(index, "]"))
		if err != nil || !strings.HasSuffix(index, "]") || v.Kind() != reflect.Slice || i < 0 || i >= v.Len() {
			return fmt.Errorf("there is no %s: indices count from 0", step)
		}
		v = settle(v.Index(i))
	}
	return set(v, value)
}

// settle makes what a pointer points to.
func settle(v reflect.Value) reflect.Value {
	if v.Kind() != reflect.Pointer {
		return v
	}
	if v.IsNil() {
		v.Set(reflect.New(v.Type().Elem()))
	}
	return v.Elem()
}

// field finds the field of a form by its name in YAML, or the entry of a map.
func field(v reflect.Value, name string) (reflect.Value, error) {
	if v.Kind() == reflect.Struct {
		for i := range v.NumField() {
			if tag, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ","); tag == name {
				return v.Field(i), nil
			}
		}
	}
	return reflect.Value{}, fmt.Errorf("there is no field %q", name)
}

func set(v reflect.Value, value string) error {
	if text, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return text.UnmarshalText([]byte(value))
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(value)
		return nil
	case reflect.Int:
		n, err := strconv.Atoi(value)
		v.SetInt(int64(n))
		return err
	case reflect.Bool:
		b, err := strconv.ParseBool(value)
		v.SetBool(b)
		return err
	}
	return fmt.Errorf("is no single value: vary a field in it")
}
