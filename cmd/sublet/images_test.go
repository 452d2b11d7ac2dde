package main

import (
	"reflect"
	"testing"

	"github.com/spf13/pflag"

	"sublet/datapath/image"
)

// The agents of a lab are told what the lab was told of images.
func TestImageOptionsArePassedOn(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{nil, {"--images", dir, "--registry", "docker.io", "--images-quota", "5GiB"}} {
		var given, passed imageOptions
		for _, o := range []struct {
			of   *imageOptions
			args []string
		}{{&given, args}, {&passed, nil}} {
			flags := pflag.NewFlagSet("", pflag.ContinueOnError)
			o.of.flags(flags)
			if o.of == &passed {
				o.args = given.args()
			}
			if err := flags.Parse(o.args); err != nil {
				t.Fatal(err)
			}
			if err := o.of.check(); err != nil {
				t.Fatal(err)
			}
		}
		if !reflect.DeepEqual(given, passed) {
			t.Errorf("%+v is passed on as %+v", given, passed)
		}
		if args == nil && passed.bytes != image.DefaultQuota {
			t.Errorf("by default images have %s", passed.bytes)
		}
	}
	bad := imageOptions{quota: "-1"}
	if err := bad.check(); err == nil {
		t.Error("a quota below nothing is taken")
	}
}
