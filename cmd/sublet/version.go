package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"sublet/lease/api"
)

// version is set by the Makefile: the tag or commit that was built.
var version string

// versionOf is what was built, "unknown" when neither the Makefile nor the Go
// command recorded it.
func versionOf() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "unknown"
}

// versionView is what `sublet version -o json` says.
type versionView struct {
	APIVersion string `json:"api_version"` // of the API, and of what is said with -o json
	Version    string `json:"version"`
	Go         string `json:"go"`
	Platform   string `json:"platform"` // operating system/architecture
}

func (a *app) versionCommand() *cobra.Command {
	return a.noun(&cobra.Command{
		Use:     "version",
		Short:   "Say which version this is",
		Example: "  sublet version\n  sublet version -o json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			v := versionView{api.APIVersion, versionOf(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
			if a.format != "table" {
				return a.print(v, "", nil)
			}
			_, err := fmt.Fprintf(a.out, "sublet %s (%s, %s)\n", v.Version, v.Go, v.Platform)
			return err
		},
	})
}
