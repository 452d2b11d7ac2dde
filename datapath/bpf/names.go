package bpf

import (
	"fmt"
	"strings"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// EnumNames gives the names of a C enum's values, from the type information of
// the object that load returns: PREFIX_TOO_BIG is "too-big". The last
// enumerator, which counts the others, is left out. It reads the object once,
// when it is first asked.
func EnumNames(load func() (*ebpf.CollectionSpec, error), enum, prefix string) func() []string {
	return sync.OnceValue(func() []string {
		spec, err := load()
		if err != nil {
			panic(err) // an object that is part of the program
		}
		var e *btf.Enum
		if err := spec.Types.TypeByName(enum, &e); err != nil {
			panic(fmt.Sprintf("enum %s: %v", enum, err))
		}
		names := make([]string, len(e.Values)-1)
		for _, v := range e.Values {
			if v.Value < uint64(len(names)) {
				names[v.Value] = strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(v.Name, prefix), "_", "-"))
			}
		}
		return names
	})
}
