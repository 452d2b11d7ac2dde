// Package text writes entries of OpenFlow tables as ovs-ofctl dump-flows does
// (ovs-fields(7), ovs-actions(7)), for people and for scripts that read that.
package text
