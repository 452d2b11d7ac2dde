package file

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// The examples of the repository are read and come back unchanged.
func TestExamples(t *testing.T) {
	for _, path := range examples(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			switch schemaOf(path) {
			case "substrate.schema.json":
				same(t, path, text, ParseSubstrate, FormatSubstrate)
			case "policy.schema.json": // nobody writes them
				if _, err := ParsePolicy(path, text); err != nil {
					t.Error(err)
				}
			default:
				same(t, path, text, ParseRequest, FormatRequest)
			}
		})
	}
}

// same wants read(write(read(text))) = read(text), and writing to be stable.
func same[T any](t *testing.T, path string, text []byte, parse func(string, []byte) (T, error), format func(T) ([]byte, error)) {
	t.Helper()
	first, err := parse(path, text)
	if err != nil {
		t.Fatal(err)
	}
	written, err := format(first)
	if err != nil {
		t.Fatal(err)
	}
	second, err := parse("written", written)
	if err != nil {
		t.Fatalf("%v in\n%s", err, written)
	}
	if !reflect.DeepEqual(first, second) {
		t.Errorf("read %+v, after writing %+v", first, second)
	}
	again, err := format(second)
	if err != nil || string(again) != string(written) {
		t.Errorf("written twice: %v\n%s\n%s", err, written, again)
	}
}
