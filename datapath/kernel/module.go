package kernel

import (
	"bufio"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Release is the running kernel's, as uname -r says it; "" if it does not tell.
func Release() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

// Loadable says that a feature is a module which the kernel would load when it
// is used. Trying it out would load it, and some modules make devices in every
// network namespace there is (gre0, tunl0).
func Loadable(module string) bool {
	if _, err := os.Stat(filepath.Join("/sys/module", module)); err == nil {
		return false // there already
	}
	return isModule(filepath.Join("/lib/modules", Release()), module)
}

// isModule looks for a module in the index that depmod(8) writes.
func isModule(dir, module string) bool {
	f, err := os.Open(filepath.Join(dir, "modules.dep"))
	if err != nil {
		return false
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		file, _, _ := strings.Cut(lines.Text(), ":")
		name, _, ok := strings.Cut(path.Base(file), ".ko")
		if ok && strings.ReplaceAll(name, "-", "_") == module {
			return true
		}
	}
	return false
}
