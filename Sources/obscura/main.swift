import VaultStore

Vault.endProcess(runObscura())
