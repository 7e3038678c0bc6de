cp .sigstore/fulcio.pem .sigstore/rekor.pub .sigstore/ctfe.pub .
