package bpf

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The Go form of the contract is what the header makes.
func TestContractIsGenerated(t *testing.T) {
	made := filepath.Join(t.TempDir(), "contract.go")
	if text, err := exec.Command("go", "run", "../../tools/contract", "include/contract.h", made).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	want, err := os.ReadFile(made)
	if err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile("contract.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, want) {
		t.Error("contract.go is not what include/contract.h makes: run go generate ./datapath/bpf")
	}
}

// A mark is of one kind: no kind's bits are among another's, or a VNI's.
func TestMarksAreOfOneKind(t *testing.T) {
	kinds := map[string]uint32{"probe": MarkProbe, "decap": MarkDecap, "inbound": MarkInbound}
	for name, mark := range kinds {
		if mark&MarkKind == 0 || mark&MarkVNI&MarkKind != 0 {
			t.Errorf("%s: mark %#x has no bit of a kind", name, mark)
		}
		for other, its := range kinds {
			if name != other && mark&its&MarkKind != 0 {
				t.Errorf("marks %s %#x and %s %#x share bits", name, mark, other, its)
			}
		}
	}
}
