package vnet

import "time"

// Record is a lease in the ledger, where it stays for good.
type Record struct {
	Serial   uint64    `json:"serial"`
	Tenant   TenantID  `json:"tenant"`
	Network  VNetID    `json:"network"`
	Owner    uint32    `json:"owner_uid"`
	State    State     `json:"state"`
	Admitted time.Time `json:"admitted"`
	Start    time.Time `json:"start"`        // of the window
	End      time.Time `json:"end,omitzero"` // of the window; zero: until released
	Ran      time.Time `json:"ran,omitzero"` // first; zero: it never did
	Ended    time.Time `json:"ended,omitzero"`
	Why      string    `json:"why,omitempty"` // it ended

	// The most of any stage, as quotas count it.
	Nodes     int   `json:"nodes"`
	Links     int   `json:"links"`
	CPU       CPU   `json:"cpu_milli"`
	Memory    Bytes `json:"memory_bytes"`
	Bandwidth Rate  `json:"bandwidth_bps"`

	Quoted  float64   `json:"quoted"`            // for the whole window; 0: it has no end
	Used    Cost      `json:"used"`              // as of the last change of state
	Verdict string    `json:"verdict,omitempty"` // of the last check: kept or broken
	Checked time.Time `json:"checked,omitzero"`
}

// Life is when a lease's life changed.
type Life struct {
	Admitted time.Time `json:"admitted,omitzero"`
	Ran      time.Time `json:"ran,omitzero"` // first
	Ended    time.Time `json:"ended,omitzero"`
	Why      string    `json:"why,omitempty"` // it ended
}
