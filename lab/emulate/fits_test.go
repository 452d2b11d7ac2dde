package emulate

import (
	"strings"
	"testing"

	"sublet/vnet"
)

func TestFits(t *testing.T) {
	if err := Fits(vnet.Substrate{Switches: make([]string, MaxNodes+1)}); err == nil || !strings.Contains(err.Error(), "use the model") {
		t.Errorf("%d switches: %v", MaxNodes+1, err)
	}
	if err := Fits(vnet.Substrate{Switches: []string{"s"}, Hosts: make([]vnet.SubstrateNode, 1)}); err != nil {
		t.Errorf("two nodes: %v", err)
	}
}
