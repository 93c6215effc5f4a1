-- Configuration for vim.lsp.enable('pallas_lsp') (Neovim 0.11 and later); see :help pallas-lsp
return require('pallas_lsp.config').client()
