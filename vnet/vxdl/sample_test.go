package vxdl

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// The public documents beside the repository are read, each as a request; a
// substrate written as an infrastructure is one too.
func TestSamples(t *testing.T) {
	const folder = "/work/shared/vxdl/samples"
	paths, err := filepath.Glob(folder + "/*.xml")
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) == 0 {
		t.Skipf("no sample documents in %s", folder)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			r, notes, err := Parse(path, text, false)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range notes {
				t.Log(n)
			}
			written, lost := Format(r)
			for _, n := range lost {
				t.Log("written: ", n)
			}
			again, _, err := Parse("written", written, true)
			if err != nil {
				t.Fatalf("%v in\n%s", err, written)
			}
			if !reflect.DeepEqual(r, again) {
				t.Errorf("read %+v, after writing %+v", r, again)
			}
		})
	}
}
