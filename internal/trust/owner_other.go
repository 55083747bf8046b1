//go:build !unix

package trust

import "os"

// ownerOf trusts everybody: this system does not tell.
func ownerOf(os.FileInfo) owner { return owner{trusted: true} }
