;; emacs --batch -l emacs_eglot.el FILE: the configuration of docs/lsp.md, then diagnostics and a quick fix.
(package-initialize)
(require 'eglot)
(require 'json)
(let ((command (append (json-parse-string (getenv "PALLAS_CMD")) nil)))
  (add-to-list 'eglot-server-programs (cons 'python-mode command)))
(setq-default eglot-workspace-configuration
              (list :pallas-lsp (list :interpreter (getenv "PALLAS_PYTHON"))))
(add-hook 'python-mode-hook #'eglot-ensure)

(defun await (what seconds test)
  (let ((end (+ (float-time) seconds)) found)
    (while (and (not (setq found (funcall test))) (< (float-time) end))
      (accept-process-output nil 0.1))
    (unless found
      (message "FAIL timed out waiting for %s" what)
      (kill-emacs 1))
    found))

(defun ours ()
  (eglot--signal-textDocument/didChange) ; in batch mode no idle timer does
  (flymake-start)
  (seq-find (lambda (each) (string-match-p "has a start value" (flymake-diagnostic-text each)))
            (flymake-diagnostics)))

(find-file (car command-line-args-left))
(run-hooks 'post-command-hook)
(await "the server" 60 #'eglot-current-server)
(let ((each (await "the diagnostic" 120 #'ours)))
  (message "diagnostic on: %s" (buffer-substring (flymake-diagnostic-beg each) (flymake-diagnostic-end each)))
  (goto-char (flymake-diagnostic-beg each))
  (cl-letf ((last-nonmenu-event ?\r) ; a key, so that the choice is not made in a menu of the window system
            ((symbol-function 'completing-read)
             (lambda (_ choices &rest _)
               (let ((titles (mapcar (lambda (each) (if (consp each) (car each) each)) choices)))
                 (seq-find (lambda (title) (string-prefix-p "Use pl.run_state" title)) titles)))))
    (eglot-code-actions (flymake-diagnostic-beg each) (flymake-diagnostic-end each) "quickfix" t)))
(await "the fix" 60 (lambda () (string-match-p "pl\\.run_state(multiply)(plgpu\\.ACC\\.init(c))" (buffer-string))))
(await "the diagnostic to vanish" 60 (lambda () (not (ours))))
(message "fixed with eglot in Emacs %s" emacs-version)
(kill-emacs 0)
